"""The registry, as commands read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainlib._registry.client import connect
from trainlib._registry.finding import find_run
from trainlib._registry.listing import (
    CheckpointSummary,
    RunDetails,
    RunState,
    RunSummary,
    describe_run,
    list_checkpoints,
    list_runs,
)
from trainlib._registry.store import current_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["checkpoints_of", "client", "details_of", "recorded_runs"]


@contextmanager
def client() -> Iterator[MlflowClient]:
    """A client of the store that a script here would use."""
    store = current_store()
    with store.in_use():
        yield connect(store)


def recorded_runs(
    *,
    experiment: str | None = None,
    status: RunState | None = None,
    limit: int | None = None,
    with_trials: bool = False,
) -> list[RunSummary]:
    """The trainings and sweeps, newest first.

    Raises:
        RunNotFoundError: there is no such experiment.
    """
    with client() as registry:
        return list_runs(registry, experiment=experiment, status=status, limit=limit, with_trials=with_trials)


def details_of(run: str) -> RunDetails:
    """Everything about a run.

    Raises:
        RunNotFoundError: there is no such run.
    """
    with client() as registry:
        return describe_run(registry, find_run(registry, run))


def checkpoints_of(run: str | None, limit: int) -> list[CheckpointSummary]:
    """The checkpoints of a run, or of all runs, newest first.

    Raises:
        RunNotFoundError: there is no such run.
    """
    with client() as registry:
        return list_checkpoints(registry, run=find_run(registry, run) if run is not None else None, limit=limit)
