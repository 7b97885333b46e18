"""Which MLflow run a training has: the one that it began before, or a new one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainlib._registry import tags as names
from trainlib._registry.client import connect
from trainlib._registry.experiments import find_or_create_experiment
from trainlib._registry.finding import find_run, find_run_of_flow, find_running
from trainlib._registry.provenance import Driver, source_tags
from trainlib._registry.recorded_run import Place
from trainlib._registry.run import RegisteredRun, continue_run, create_run
from trainlib._registry.store import TrackingStore
from trainlib.config import RunConfig
from trainlib.errors import RunInUseError

if TYPE_CHECKING:
    from mlflow.entities import Run

_lock = threading.Lock()


def open_run(
    config: RunConfig,
    *,
    store: TrackingStore,
    default_name: str,
    kind: str,
    run: str | None,
    flow_run_id: str | None,
    tags: Mapping[str, str],
    require: Callable[[Run], None] = lambda run: None,
) -> RegisteredRun:
    """The run of a training: the one asked for, the one that this flow run began, the one of that name whose
    process died, or a new one.

    Args:
        config: How it is kept.
        store: Where it is kept.
        default_name: What a new one is called if the config does not say.
        kind: ``training`` or ``sweep``. One does not continue what the other began.
        run: The one asked for, by id or name.
        flow_run_id: The Prefect flow run that it belongs to.
        tags: Further tags to set.
        require: Raises an error for a run that must not be continued. That run is left as it is.

    Raises:
        RunNotFoundError: there is no such ``run``.
        RunInUseError: another process is training under that name.
    """
    with _lock:  # trainings of one process that open a run at the same time must not both take the same one
        client = connect(store)
        found: Run | None
        if run is not None:
            found = asked_for = find_run(client, run)
            _require_unused(asked_for)
            experiment = client.get_experiment(asked_for.info.experiment_id)
        else:
            experiment = find_or_create_experiment(
                client, store.uri, name=config.experiment_name, storage_path=config.storage_path
            )
            found = find_run_of_flow(client, experiment.experiment_id, kind, flow_run_id)
            if found is None:
                found = find_running(client, experiment.experiment_id, kind, config.name)
                if found is not None:
                    _require_unused(found)
        place = Place.of_experiment(experiment, config, store)
        marks = {**({names.FLOW_RUN_ID: flow_run_id} if flow_run_id else {}), **tags}
        if found is not None:
            require(found)
            lost = "the process that coordinated it ended"
            return continue_run(client, found, place, config.checkpoint_config, tags=marks, lost_message=lost)
        named = {names.NAME: config.name} if config.name else {}
        return create_run(
            client,
            place,
            config.checkpoint_config,
            name=config.name or default_name,
            tags={**source_tags(), **marks, **named, names.KIND: kind},
        )


def _require_unused(run: Run) -> None:
    """Refuse a run that another process is working on, as far as can be told."""
    text = run.data.tags.get(names.DRIVER)
    if run.info.status != "RUNNING" or text is None:
        return
    driver = Driver.parse(text)
    if driver == Driver.this() or not driver.is_gone():
        raise RunInUseError(
            f"the training {run.info.run_name!r} (MLflow run {run.info.run_id}) is being run by process {driver.pid} on "
            f"{driver.host}. Wait for it, give this one another RunConfig.name, or, if that machine is gone, end the run "
            "in MLflow and restore it."
        )
