"""What the ranks of a training are doing that another process runs: ``trainlib stacks``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlib._execution.stacks.desk import ask
from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.finding import find_run
from trainlib._registry.ownership import Occupancy, Owner, occupancy
from trainlib._registry.store import current_store
from trainlib.errors import RunNotReachableError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = ["stacks_of"]


def stacks_of(run: str) -> Iterator[tuple[str, str]]:
    """The stacks of all ranks of a training, as text, after its name; for a sweep, of all trials that run.

    Args:
        run: The id or the name of its MLflow run.

    Raises:
        RunNotFoundError: there is no such run.
        RunNotReachableError: it does not run now, or not on this machine, or its process does not answer.
    """
    store = current_store()
    with store.in_use():
        client = connect(store)
        found = find_run(client, run)
        trainings = _running_trials(client, found) if found.data.tags.get(tags.KIND) == "sweep" else [found]
    if not trainings:
        raise RunNotReachableError(f"no trial of the sweep {_name(found)} runs now")
    for training in trainings:
        yield f"{training.info.run_name} (MLflow run {training.info.run_id})", _stacks_of(training)


def _running_trials(client: MlflowClient, sweep: Run) -> list[Run]:
    _require_running(sweep)
    trials = f"{tags.where(tags.MLFLOW_PARENT, sweep.info.run_id)} AND attributes.status = 'RUNNING'"
    return list(client.search_runs([sweep.info.experiment_id], trials, order_by=["attributes.start_time ASC"]))


def _require_running(run: Run) -> int:
    """Gives the process of this machine that coordinates a run."""
    driver = Owner.of(run).driver
    match occupancy(run):
        case Occupancy.FREE:
            raise RunNotReachableError(f"{_name(run)} does not run: its status is {run.info.status}")
        case Occupancy.GONE:
            raise RunNotReachableError(
                f"{_name(run)} does not run: its process ended without a word. Run it again to continue it."
            )
    assert driver is not None, "otherwise nobody runs it"
    if not driver.is_here:
        raise RunNotReachableError(
            f"{_name(run)} is run by process {driver.pid} on {driver.host}, and only there can it be asked for its stacks. Call "
            f"`trainlib stacks {run.info.run_id}` on that machine, or in that container, as the same user: e.g. "
            f"`ssh {driver.host} trainlib stacks {run.info.run_id}`, or `kubectl exec {driver.host} -- trainlib stacks ...`."
        )
    return driver.pid


def _stacks_of(run: Run) -> str:
    pid = _require_running(run)
    try:
        return ask(run.info.run_id, pid)
    except ConnectionRefusedError:
        raise RunNotReachableError(
            f"{_name(run)} has no workers now: process {pid} is between two attempts, or starts or ends it. Try again in a "
            "moment."
        ) from None
    except TimeoutError:
        raise RunNotReachableError(f"process {pid}, which runs {_name(run)}, does not answer") from None
    except ConnectionError as error:
        raise RunNotReachableError(f"process {pid}, which runs {_name(run)}, cannot be asked: {error}") from None


def _name(run: Run) -> str:
    return f"{run.info.run_name!r} (MLflow run {run.info.run_id})"
