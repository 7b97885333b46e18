"""One training, one MLflow run: found, continued, described and ended."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import storage
from trainlib.config import RunConfig
from trainlib.errors import RunInUseError, RunNotFoundError
from trainlib.registry import client as mlflow_client
from trainlib.registry.checkpoints import CheckpointStore
from trainlib.registry.metrics import MetricWriter, is_about_data, last_steps, stored_params
from trainlib.registry.provenance import Driver, source_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

_TRAINER, _SETTINGS = "trainer", "settings.pkl"
_PREPROCESSOR = "preprocessor", "preprocessor.pkl"
_PARAMS_AT_ONCE = 100
_LONGEST_MESSAGE = 1000
_lock = threading.Lock()


@dataclass(frozen=True)
class AttemptRecord:
    """What an attempt leaves behind."""

    number: int
    outcome: str
    """``finished``, the cause of its failure, or ``lost`` when its coordinating process ended."""
    resumed_from: str | None
    rank: int | None = None
    node: str | None = None
    lost_iterations: int = 0
    """How many iterations came after the newest checkpoint, and have to be made again."""
    message: str = ""


class RegisteredRun:
    """The MLflow run of one training, through all of its attempts and processes."""

    def __init__(
        self,
        client: MlflowClient,
        run: Any,
        config: RunConfig,
        *,
        uri: str,
        continued: bool,
        parent: RegisteredRun | None = None,
    ) -> None:
        """A run; ``parent`` is that of the sweep of which it is a trial."""
        self.client = client
        self.config = config
        self.tracking_uri = uri
        self.continued = continued
        self.run_id: str = run.info.run_id
        self.experiment_id: str = run.info.experiment_id
        self.artifact_uri: str = run.info.artifact_uri
        self.name: str = run.info.run_name
        self.experiment_name: str
        self.artifact_root: str
        if parent is not None:
            self.experiment_name, self.artifact_root = parent.experiment_name, parent.artifact_root
        else:
            found = client.get_experiment(self.experiment_id)
            self.experiment_name, self.artifact_root = found.name, found.artifact_location
        self.url = mlflow_client.ui_url(uri, self.experiment_id, self.run_id)
        self.flow_run_before: str | None = run.data.tags.get("trainlib.flow_run_id") if continued else None
        """The Prefect flow run that an earlier process worked in."""
        self.attempts = [AttemptRecord(**json.loads(text)) for text in _attempt_tags(run.data.tags)]
        self.log_dir: Path = _log_dir(config, parent) / f"{self.name.replace('/', '_')}_{self.run_id[:8]}"
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.checkpoints = CheckpointStore(
            client,
            run_id=self.run_id,
            experiment_id=self.experiment_id,
            artifact_root=self.artifact_root,
            log_dir=self.log_dir,
            config=config.checkpoint_config,
        )
        steps = last_steps(client, run) if continued else {}
        self.iterations_before = max((step for key, step in steps.items() if not is_about_data(key)), default=0)
        """How far an earlier process came, so that a table can be completed from the registry."""
        if continued:
            self.checkpoints.load()
        self.metrics = MetricWriter(client, self.run_id, last_steps=steps, unsaved=self.log_dir / "unsaved.jsonl")

    # -- describing -----------------------------------------------------------------------------------

    def describe(self, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Write params once, and tags. MLflow refuses to change a param, so a continued run keeps its own."""
        from mlflow.entities import RunTag

        if not self.continued:
            new = stored_params(flat(params))
            for start in range(0, len(new), _PARAMS_AT_ONCE):
                self.client.log_batch(self.run_id, params=new[start : start + _PARAMS_AT_ONCE])
        self.client.log_batch(self.run_id, tags=[RunTag(key, value) for key, value in tags.items()])

    def save_trainer(self, settings: bytes) -> None:
        """Keep with the run what another process needs to continue it, in the place of what was kept before."""
        location = storage.join(self.artifact_uri, _TRAINER)
        if self.continued and _load(location, _SETTINGS) == settings:
            return
        storage.delete(location)
        self._save(_TRAINER, _SETTINGS, settings)

    def save_preprocessor(self, preprocessor: bytes) -> None:
        """Keep the fitted preprocessor: whoever continues the run applies the same."""
        storage.delete(storage.join(self.artifact_uri, _PREPROCESSOR[0]))
        self._save(*_PREPROCESSOR, preprocessor)

    def load_preprocessor(self) -> bytes | None:
        """What :meth:`save_preprocessor` kept, if anything."""
        return _load(storage.join(self.artifact_uri, _PREPROCESSOR[0]), _PREPROCESSOR[1])

    def _save(self, folder: str, name: str, data: bytes) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            staged = Path(temporary) / folder
            staged.mkdir()
            (staged / name).write_bytes(data)
            storage.upload(staged, storage.join(self.artifact_uri, folder))

    def record(self, attempt: AttemptRecord) -> None:
        """Leave a short record of an attempt."""
        from mlflow.entities import RunTag

        self.attempts.append(attempt)
        self.client.log_batch(self.run_id, tags=[RunTag(key, value) for key, value in _record_tags(attempt).items()])

    def record_success(self, attempt: AttemptRecord) -> None:
        """Leave the record of an attempt together with its last metrics, in one call."""
        self.attempts.append(attempt)
        self.metrics.note(tags=_record_tags(attempt))
        self.metrics.flush()

    def recorded_before(self) -> dict[int, dict[str, float]]:
        """The metrics of all iterations that an earlier process recorded."""
        rows: dict[int, dict[str, float]] = {}
        if not self.iterations_before:
            return rows
        for key in self.client.get_run(self.run_id).data.metrics:
            if is_about_data(key):
                continue
            for point in self.client.get_metric_history(self.run_id, key):
                if point.step <= self.iterations_before:
                    rows.setdefault(point.step, {})[key] = point.value
        return rows

    # -- ending ---------------------------------------------------------------------------------------

    def close(self, status: str) -> None:
        """Write what is left and end the run as FINISHED, FAILED or KILLED."""
        try:
            self.checkpoints.close()
            self.metrics.close()
        finally:
            self.client.set_terminated(self.run_id, status)


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
        registered.record(AttemptRecord(number, "lost", None, message="the process that coordinated it ended"))
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
    location = storage.join(found.artifact_uri, _TRAINER)
    settings = _load(location, _SETTINGS)
    if settings is None:
        raise RunNotFoundError(
            f"the MLflow run {found.run_id} was not made by a trainer, so it cannot be restored: nothing is at {location}"
        )
    return found.run_id, settings


def _load(location: str, name: str) -> bytes | None:
    if not storage.exists(location):
        return None
    with tempfile.TemporaryDirectory() as folder:
        storage.download(location, Path(folder))
        return (Path(folder) / name).read_bytes()


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


def _attempt_tags(tags: Mapping[str, str]) -> list[str]:
    return [value for key, value in sorted(tags.items()) if key.startswith("trainlib.attempt.")]


def _log_dir(config: RunConfig, parent: RegisteredRun | None) -> Path:
    """Where the local folders of trainings are. Logs of one whose storage is remote are kept at home."""
    if parent is not None:
        return parent.log_dir
    root = storage.local_path(config.storage_path) if config.storage_path else None
    return root or storage.home() / "runs"


def _record_tags(attempt: AttemptRecord) -> dict[str, str]:
    text = json.dumps(vars(replace(attempt, message=attempt.message[:_LONGEST_MESSAGE])))
    return {f"trainlib.attempt.{attempt.number:03d}": text, "trainlib.attempts": str(attempt.number)}


def flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested params with their keys joined by a dot, which is what charts best.

    Example:
        >>> flat({"model": {"lr": 0.1}, "epochs": 3})
        {'model.lr': 0.1, 'epochs': 3}
    """
    result: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping) and value:
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[f"{prefix}{key}"] = value
    return result
