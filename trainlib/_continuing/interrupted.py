"""Which recorded trainings and sweeps were interrupted, so that they can go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.finding import find_last_named, find_newest_of_flow
from trainlib._registry.listing import RunState
from trainlib._registry.opening import was_let_down
from trainlib._registry.store import current_store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = ["interrupted_runs", "run_begun_in"]

_PAGE = 100


def interrupted_runs() -> Iterator[str]:
    """The ids of the trainings and sweeps that somebody or something ended before they were over, newest first.

    One whose function raised an error is not among them, and neither is one that a newer run of its name has replaced.
    """
    store = current_store()
    with store.in_use():
        client = connect(store)
        experiments = [each.experiment_id for each in client.search_experiments()]
        for run in _recorded(client, experiments):
            if _is_interrupted(run) and _is_last_of_its_name(client, run):
                yield run.info.run_id


def run_begun_in(flow_run_id: str) -> str | None:
    """The id of the training or sweep that a flow run has begun or continued, whatever became of it; None if there is none."""
    store = current_store()
    with store.in_use():
        client = connect(store)
        experiments = [each.experiment_id for each in client.search_experiments()]
        begun = find_newest_of_flow(client, experiments, flow_run_id)
    return begun.info.run_id if begun is not None else None


def _recorded(client: MlflowClient, experiments: list[str]) -> Iterator[Run]:
    token = None
    while True:
        page = client.search_runs(
            experiments,
            f"tags.`{tags.KIND}` LIKE '%' AND attributes.status != 'FINISHED'",
            max_results=_PAGE,
            order_by=["attributes.start_time DESC"],
            page_token=token,
        )
        yield from page
        if not (token := page.token):
            return


def _is_interrupted(run: Run) -> bool:
    return RunState.of(run) in (RunState.KILLED, RunState.LOST) or was_let_down(run)


def _is_last_of_its_name(client: MlflowClient, run: Run) -> bool:
    known = run.data.tags
    last = find_last_named(client, run.info.experiment_id, known[tags.KIND], known.get(tags.NAME))
    return last is None or last.info.run_id == run.info.run_id
