"""What the registry keeps of a training so that it can go on: its settings, its state, and its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib._registry.client import connect
from trainlib._registry.finding import find_run, load_trainer
from trainlib._registry.listing import RunState
from trainlib._registry.logged_models import find_checkpoint, read_checkpoints
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import current_store
from trainlib._settings import TrainerSettings
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["RecordedTrainer", "StartingPoint", "is_checkpoint_id", "load_recorded", "starting_point", "state_of"]

_CHECKPOINT_ID = re.compile(r"m-[0-9a-f]{32}")


@dataclass(frozen=True)
class RecordedTrainer:
    """The settings of a trainer or tuner, as its run keeps them."""

    run_id: str
    settings: TrainerSettings | dict[str, Any]
    """Those of a trainer, or the dict that a tuner is made of."""

    @property
    def config(self) -> dict[str, Any] | None:
        """What its function is called with, or what its search space is. Its secrets were not saved."""
        if isinstance(self.settings, TrainerSettings):
            return self.settings.train_loop_config
        return self.settings["param_space"]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class StartingPoint:
    """A checkpoint that a new training can start from."""

    run_id: str
    run_name: str
    checkpoint: SavedCheckpoint


def is_checkpoint_id(text: str) -> bool:
    """Whether a text is the id of a checkpoint.

    Example:
        >>> is_checkpoint_id("m-" + "0" * 32), is_checkpoint_id("digits")
        (True, False)
    """
    return _CHECKPOINT_ID.fullmatch(text) is not None


def load_recorded(run: str) -> RecordedTrainer:
    """The settings that a run was made with. They are a pickle: whoever can write to the registry's artifacts is trusted.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
        ImportError: its code is not where it can be imported.
    """
    import cloudpickle

    run_id, data = load_trainer(run)
    try:
        return RecordedTrainer(run_id, cloudpickle.loads(data))
    except ImportError as error:
        raise ImportError(
            f"the code of MLflow run {run_id} cannot be loaded ({error}). Make it importable where this runs, e.g. by calling this in "
            "the folder that its script was started in"
        ) from error


def state_of(run: str) -> tuple[str, str, RunState]:
    """The id of a run, its name, and how it is.

    Raises:
        RunNotFoundError: there is no such run.
    """
    with _client() as client:
        found = find_run(client, run)
    return found.info.run_id, found.info.run_name, RunState.of(found)


def starting_point(source: str) -> StartingPoint:
    """The checkpoint of that id, or the newest one of a run.

    Raises:
        RunNotFoundError: there is no such run.
        CheckpointNotFoundError: there is no such checkpoint, or the run has none.
    """
    with _client() as client:
        if is_checkpoint_id(source):
            run_id, checkpoint = find_checkpoint(client, source)
            return StartingPoint(run_id, find_run(client, run_id).info.run_name, checkpoint)
        found = find_run(client, source).info
        saved = read_checkpoints(client, found.experiment_id, found.run_id).saved
    if not saved:
        raise CheckpointNotFoundError(
            f"{found.run_name!r} (MLflow run {found.run_id}) has no checkpoint to start from. To run it again from its "
            f"beginning: trainlib rerun {found.run_id}"
        )
    return StartingPoint(found.run_id, found.run_name, saved[-1])


@contextmanager
def _client() -> Iterator[MlflowClient]:
    store = current_store()
    with store.in_use():
        yield connect(store)
