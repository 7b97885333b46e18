"""One training, one MLflow run: described, recorded and ended."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._registry import client as mlflow_client
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.checkpoints import CheckpointStore
from trainlib._registry.metrics import MetricWriter, is_about_data, last_steps, stored_params
from trainlib.config import RunConfig

if TYPE_CHECKING:
    from mlflow import MlflowClient

TRAINER, SETTINGS = "trainer", "settings.pkl"
_PREPROCESSOR = "preprocessor", "preprocessor.pkl"
_PARAMS_AT_ONCE = 100
_LONGEST_MESSAGE = 1000


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
        self.attempts = [_record_of(text) for text in _attempt_tags(run.data.tags)]
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
        location = storage.join(self.artifact_uri, TRAINER)
        if self.continued and load_file(location, SETTINGS) == settings:
            return
        storage.delete(location)
        self._save(TRAINER, SETTINGS, settings)

    def save_preprocessor(self, preprocessor: bytes) -> None:
        """Keep the fitted preprocessor: whoever continues the run applies the same."""
        storage.delete(storage.join(self.artifact_uri, _PREPROCESSOR[0]))
        self._save(*_PREPROCESSOR, preprocessor)

    def load_preprocessor(self) -> bytes | None:
        """What :meth:`save_preprocessor` kept, if anything."""
        return load_file(storage.join(self.artifact_uri, _PREPROCESSOR[0]), _PREPROCESSOR[1])

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


def load_file(location: str, name: str) -> bytes | None:
    """A file of a folder that a run keeps; None if there is no such folder."""
    if not storage.exists(location):
        return None
    with tempfile.TemporaryDirectory() as folder:
        storage.download(location, Path(folder))
        return (Path(folder) / name).read_bytes()


def _attempt_tags(tags: Mapping[str, str]) -> list[str]:
    return [value for key, value in sorted(tags.items()) if key.startswith("trainlib.attempt.")]


def _record_of(text: str) -> AttemptRecord:
    facts = json.loads(text)
    return AttemptRecord(**{**facts, "outcome": Outcome(facts["outcome"])})


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
