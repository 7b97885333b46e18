"""Which MLflow run a training has: the one that it began before, or a new one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._registry import client as mlflow_client
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.provenance import Driver, source_tags
from trainlib._registry.run import SETTINGS, TRAINER, RegisteredRun, load_file
from trainlib.config import RunConfig
from trainlib.errors import RunInUseError, RunNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient

_lock = threading.Lock()


def open_run(
    config: RunConfig,
    *,
    default_name: str,
    kind: str,
    run: str | None,
    flow_run_id: str | None,
    tags: Mapping[str, str],
    require: Callable[[Any], None] = lambda run: None,
) -> RegisteredRun:
    """The run of a training: the one asked for, the one that this flow run began, the one of that name whose
    process died, or a new one. One that ``require`` raises for is not touched.

    Args:
        config: How it is kept.
        default_name: What a new one is called if the config does not say.
        kind: ``training`` or ``sweep``: one does not go on with what the other began.
        run: The one asked for, by id or name.
        flow_run_id: The Prefect flow run that it belongs to.
        tags: What it is marked with.
        require: Raises for a run that must not be continued.

    Raises:
        RunNotFoundError: ``run`` names none.
        RunInUseError: another process is training under that name.
    """
    with _lock:
        uri = mlflow_client.tracking_uri()
        client = mlflow_client.connect(uri)
        if run is not None:
            found: Any = find_run(client, run)
            _require_unused(found)
        else:
            experiment_id, _, _ = mlflow_client.experiment(client, config.experiment_name, config.storage_path)
            found = _of_flow_run(client, experiment_id, kind, flow_run_id) or _interrupted(
                client, experiment_id, kind, config.name
            )
        driver = {"trainlib.driver": str(Driver.this())}
        if found is not None:
            require(found)
            client.update_run(found.info.run_id, status="RUNNING")
            flow_run = {"trainlib.flow_run_id": flow_run_id} if flow_run_id else {}
            for key, value in {**driver, **flow_run, **tags}.items():
                client.set_tag(found.info.run_id, key, value)
            return _registered(client, found, config, uri=uri, continued=True)
        every = {**source_tags(), **driver, **tags, "trainlib.kind": kind}
        if config.name:
            every["trainlib.name"] = config.name
        if flow_run_id:
            every["trainlib.flow_run_id"] = flow_run_id
        created = client.create_run(
            experiment_id, start_time=int(time.time() * 1000), tags=every, run_name=config.name or default_name
        )
        return _registered(client, created, config, uri=uri, continued=False)


def _registered(client: MlflowClient, run: Any, config: RunConfig, *, uri: str, continued: bool) -> RegisteredRun:
    try:
        registered = RegisteredRun(client, run, config, uri=uri, continued=continued)
    except BaseException:
        client.set_terminated(run.info.run_id, "FAILED")  # or it would look as if it ran for ever
        raise
    if continued and run.info.status == "RUNNING":  # its process died before it could tell
        number = len(registered.attempts) + 1
        registered.record(AttemptRecord(number, Outcome.LOST, None, message="the process that coordinated it ended"))
    return registered


def find_run(client: MlflowClient, run: str) -> Any:
    """A run by its id or its name; of several with one name, the newest."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_run(run)
    except MlflowException:
        pass
    experiments = [found.experiment_id for found in client.search_experiments()]
    quoted = run.replace("'", "")
    runs = client.search_runs(
        experiments,
        filter_string=f"attributes.run_name = '{quoted}'",
        max_results=1,
        order_by=["attributes.start_time DESC"],
    )
    if not runs:
        raise RunNotFoundError(
            f"no training named {run!r}, and no MLflow run of that id, in {mlflow_client.tracking_uri()}. Pass the "
            "run_id of a Result, or the name given in RunConfig."
        )
    return runs[0]


def read_run(run: str, config: RunConfig) -> RegisteredRun:
    """A run to look at; it is not continued."""
    uri = mlflow_client.tracking_uri()
    client = mlflow_client.connect(uri)
    return RegisteredRun(client, find_run(client, run), config, uri=uri, continued=False)


def load_trainer(run: str) -> tuple[str, bytes]:
    """The id of a run, and the settings of the trainer that made it."""
    client = mlflow_client.connect(mlflow_client.tracking_uri())
    found = find_run(client, run).info
    location = storage.join(found.artifact_uri, TRAINER)
    settings = load_file(location, SETTINGS)
    if settings is None:
        raise RunNotFoundError(
            f"the MLflow run {found.run_id} was not made by a trainer, so it cannot be restored: nothing is at {location}"
        )
    return found.run_id, settings


def _of_flow_run(client: MlflowClient, experiment_id: str, kind: str, flow_run_id: str | None) -> Any:
    """The run that an earlier try of the same Prefect flow run began."""
    if flow_run_id is None:
        return None
    of_it = f"tags.`trainlib.kind` = '{kind}' AND tags.`trainlib.flow_run_id` = '{flow_run_id}'"
    runs = client.search_runs([experiment_id], of_it, max_results=1)
    return runs[0] if runs else None


def _interrupted(client: MlflowClient, experiment_id: str, kind: str, name: str | None) -> Any:
    """The newest run of that name, if its process died before it could end it."""
    if name is None:
        return None
    quoted = name.replace("'", "")
    runs = client.search_runs(
        [experiment_id],
        f"tags.`trainlib.kind` = '{kind}' AND tags.`trainlib.name` = '{quoted}' AND attributes.status = 'RUNNING'",
        max_results=1,
        order_by=["attributes.start_time DESC"],
    )
    if not runs:
        return None
    _require_unused(runs[0])
    return runs[0]


def _require_unused(run: Any) -> None:
    text = run.data.tags.get("trainlib.driver")
    if run.info.status != "RUNNING" or text is None:
        return
    driver = Driver.parse(text)
    if driver == Driver.this() or not driver.is_gone():
        raise RunInUseError(
            f"the training {run.info.run_name!r} (MLflow run {run.info.run_id}) is being run by process {driver.pid} on "
            f"{driver.host}. Wait for it, give this one another RunConfig.name, or, if that machine is gone, end the run "
            "in MLflow and restore it."
        )
