"""Finding runs that exist: by id, by name, or by the Prefect flow run that began them."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib._home import require_readable
from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.kept_files import TRAINER_SETTINGS
from trainlib._registry.recorded_run import Place, RecordedRun, read_run
from trainlib._registry.run_file import read_run_file, require_run_file
from trainlib._registry.store import TrackingStore, current_store
from trainlib.config import RunConfig
from trainlib.errors import RunNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


# With fewer digits, too many runs have the same.
_SHORTEST_PREFIX = 4


def find_run(client: MlflowClient, run: str) -> Run:
    """A run by its id, its name, or the beginning of its id. If several have that name, it is the newest.

    Raises:
        RunNotFoundError: there is none, or several ids begin so.
        FormatError: a newer trainlib wrote it.
    """
    from mlflow.exceptions import MlflowException

    try:
        return _readable(client.get_run(run))
    except MlflowException:
        pass
    named = f"attributes.run_name = {tags.quoted(run)}"
    experiments = [found.experiment_id for found in client.search_experiments()]
    if (found := _newest(client, experiments, named)) is None:
        if (found := _by_prefix(client, experiments, run)) is not None:
            return found
        raise RunNotFoundError(
            f"no training named {run!r}, and no MLflow run of that id, in {client.tracking_uri}. Pass the run_id of a "
            "Result, the name given in RunConfig, or the folder of the training."
        )
    return found


def _by_prefix(client: MlflowClient, experiments: list[str], prefix: str) -> Run | None:
    """The run whose id begins so."""
    if len(prefix) < _SHORTEST_PREFIX or not set(prefix) <= set(string.hexdigits.lower()):
        return None
    found = client.search_runs(experiments, f"attributes.run_id LIKE '{prefix}%'", max_results=5)
    if len(found) > 1:
        ids = ", ".join(f"{each.info.run_id} ({each.info.run_name!r})" for each in found)
        raise RunNotFoundError(f"the ids of several MLflow runs begin with {prefix!r}: {ids}. Give more of it")
    return _readable(found[0]) if found else None


def _readable(run: Run) -> Run:
    """A run, unless a newer trainlib wrote it."""
    version = run.data.tags.get(tags.FORMAT)
    if version is not None:
        require_readable(int(version), f"the run {run.info.run_name!r} (MLflow run {run.info.run_id})")
    return run


def find_run_of_flow(client: MlflowClient, experiment_id: str, kind: str, flow_run_id: str | None) -> Run | None:
    """The run that an earlier try of the same Prefect flow run began."""
    if flow_run_id is None:
        return None
    return _newest(
        client, [experiment_id], f"{tags.where(tags.KIND, kind)} AND {tags.where(tags.FLOW_RUN_ID, flow_run_id)}"
    )


def find_newest_of_flow(client: MlflowClient, experiment_ids: list[str], flow_run_id: str) -> Run | None:
    """The newest training or sweep that a Prefect flow run began or continued."""
    return _newest(
        client, experiment_ids, f"tags.`{tags.KIND}` LIKE '%' AND {tags.where(tags.FLOW_RUN_ID, flow_run_id)}"
    )


def find_last_named(client: MlflowClient, experiment_id: str, kind: str, name: str | None) -> Run | None:
    """The newest run of that ``RunConfig.name``, however it ended, or whether it has."""
    if name is None:
        return None
    return _newest(client, [experiment_id], _named(kind, name))


def next_generation(client: MlflowClient, experiment_id: str, kind: str, name: str) -> str:
    """The :data:`~tags.GENERATION` of the next run of that ``RunConfig.name``."""
    last = find_last_named(client, experiment_id, kind, name)
    return f"{int(last.data.tags.get(tags.GENERATION, 0)) + 1 if last is not None else 1:06d}"


def find_running(client: MlflowClient, experiment_id: str, kind: str, name: str) -> list[Run]:
    """The runs of that ``RunConfig.name`` that nobody has ended: they are under way, or their processes were killed."""
    return list(client.search_runs([experiment_id], f"{_named(kind, name)} AND attributes.status = 'RUNNING'"))


def _named(kind: str, name: str) -> str:
    return f"{tags.where(tags.KIND, kind)} AND {tags.where(tags.NAME, name)}"


def load_trainer(run: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The id of a run, and the pickled settings of the trainer or tuner that made it; by its name, its id or its folder.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
    """
    store = current_store()
    with store.in_use():
        found = _find_by_name_or_folder(connect(store), run).info
        settings = TRAINER_SETTINGS.load(found.artifact_uri)
    if settings is None:
        raise RunNotFoundError(
            f"the MLflow run {found.run_id} was not made by a trainer, so it cannot be restored: nothing is at "
            f"{TRAINER_SETTINGS.location(found.artifact_uri)}"
        )
    return found.run_id, settings


def _find_by_name_or_folder(client: MlflowClient, run: str | os.PathLike[str]) -> Run:
    folder = Path(run).expanduser().absolute()
    known = read_run_file(folder) if isinstance(run, str) else require_run_file(folder)
    if known is None:
        return find_run(client, os.fspath(run))
    try:
        return find_run(client, known.run_id)
    except RunNotFoundError:
        raise RunNotFoundError(
            f"{folder} is the folder of the run {known.run_id} of {known.tracking_uri}, and {client.tracking_uri} has no such "
            f"run. Set MLFLOW_TRACKING_URI={known.tracking_uri}"
        ) from None


def find_recorded_run(client: MlflowClient, run: str, config: RunConfig, store: TrackingStore) -> RecordedRun:
    """A run by its id or its name, with everything that MLflow has of it.

    Raises:
        RunNotFoundError: there is none.
    """
    found = find_run(client, run)
    experiment = client.get_experiment(found.info.experiment_id)
    return read_run(client, found, Place.of_experiment(experiment, config, store))


def _newest(client: MlflowClient, experiments: list[str], filter_string: str) -> Run | None:
    """The newest run. In one experiment, what was created last is that, even if the clock was set back before."""
    by_clock = ["attributes.start_time DESC"]
    order = [f"tags.`{tags.GENERATION}` DESC", *by_clock] if len(experiments) == 1 else by_clock
    runs = client.search_runs(experiments, filter_string, max_results=1, order_by=order)
    if runs and len(experiments) > 1:
        return _newest(client, [runs[0].info.experiment_id], filter_string)
    return _readable(runs[0]) if runs else None
