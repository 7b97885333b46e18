"""What the ranks of a training are doing that another process runs: ``trainlib stacks``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlib._execution import cluster
from trainlib._execution.stacks.board import workers_of
from trainlib._execution.stacks.collect import collect_from_nodes
from trainlib._execution.stacks.desk import ask
from trainlib._execution.stacks.report import in_full
from trainlib._process import Process
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
        RunNotReachableError: it does not run now, or neither on this machine nor on the Ray cluster that this process can join, or
            its process does not answer.
        ConnectionFailedError: it runs on another machine, and nobody answers at ``RAY_ADDRESS``.
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


def _require_running(run: Run) -> Process:
    """Gives the process that coordinates a run."""
    driver = Owner.of(run).driver
    match occupancy(run):
        case Occupancy.FREE:
            raise RunNotReachableError(f"{_name(run)} does not run: its status is {run.info.status}")
        case Occupancy.GONE:
            raise RunNotReachableError(
                f"{_name(run)} does not run: its process ended without a word. Run it again to continue it."
            )
    assert driver is not None, "otherwise nobody runs it"
    return driver


def _stacks_of(run: Run) -> str:
    driver = _require_running(run)
    return _asked_here(run, driver.pid) if driver.is_here else _read_through_ray(run, driver)


def _asked_here(run: Run, pid: int) -> str:
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


def _read_through_ray(run: Run, driver: Process) -> str:
    """Have the nodes of the cluster read the stacks of their workers: the process that coordinates them is elsewhere."""
    workers = workers_of(run.info.run_id) if cluster.join() else []
    if workers:
        return in_full(collect_from_nodes(workers))
    raise RunNotReachableError(
        f"{_name(run)} is run by process {driver.pid} on {driver.host}. From here, its ranks can be asked only through the Ray "
        "cluster that they are on, and no workers of it are there now, or RAY_ADDRESS does not name that cluster. Set it, try "
        f"again in a moment, or ask on that machine: e.g. `ssh {driver.host} trainlib stacks {run.info.run_id}`, or `kubectl exec "
        f"{driver.host} -- trainlib stacks ...`, as the same user."
    )


def _name(run: Run) -> str:
    return f"{run.info.run_name!r} (MLflow run {run.info.run_id})"
