"""MLflow, which trainlib records every training in anyway."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainlib._registry.store import TrackingStore, absolute_uri, current_store
from trainlib._training.error_file import ERROR_PICKLE
from trainlib.callbacks._callback import LoggerCallback, Trial
from trainlib.config import RunConfig

__all__ = ["MLflowLoggerCallback"]

_LOGS = "logs"


class MLflowLoggerCallback(LoggerCallback):
    """Says where the MLflow run of a training is kept, and with which experiment and tags. It makes no second run.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[MLflowLoggerCallback(experiment_name="digits")]).callbacks[0].experiment_name
        'digits'
    """

    def __init__(
        self,
        tracking_uri: str | os.PathLike[str] | None = None,
        *,
        registry_uri: str | None = None,
        experiment_name: str | None = None,
        tags: dict[str, Any] | None = None,
        tracking_token: str | None = None,
        save_artifact: bool = False,
    ) -> None:
        """
        Args:
            tracking_uri: The store of the training, instead of the one that ``MLFLOW_TRACKING_URI`` names: a server, a
                database, or the path of a folder, which gets a database ``mlflow.db``.
            registry_uri: If given, it has to be the same as ``tracking_uri``.
            experiment_name: The MLflow experiment of the training.
            tags: Tags of its MLflow run.
            tracking_token: The token that the tracking server asks for. To read checkpoints from that server after the
                training, set ``MLFLOW_TRACKING_TOKEN``.
            save_artifact: Whether the files in the training's folder are saved with the run when it ends, as its artifacts
                ``logs``. Checkpoints are in MLflow anyway.
        """
        if registry_uri is not None and registry_uri != tracking_uri:
            raise ValueError(
                f"registry_uri is {registry_uri!r}, but tracking_uri is {tracking_uri!r}. Models are kept with their runs: "
                "leave registry_uri out, or pass the same for both."
            )
        self.tracking_uri = os.fspath(tracking_uri) if tracking_uri is not None else None
        self.experiment_name = experiment_name
        self.tags = {key: str(value) for key, value in (tags or {}).items()}
        self.tracking_token = tracking_token
        self.save_artifact = save_artifact

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if self.save_artifact:
            from mlflow import MlflowClient

            client = MlflowClient(self.store_instead_of(current_store()).uri)
            for file in _own_files(Path(trial.local_path)):
                folder = Path(_LOGS, file.parent.relative_to(trial.local_path))
                client.log_artifact(trial.run_id, str(file), folder.as_posix())

    def store_instead_of(self, store: TrackingStore) -> TrackingStore:
        """The store that this names. What it leaves open is as in the given one."""
        uri = absolute_uri(self.tracking_uri) if self.tracking_uri else store.uri
        return TrackingStore(uri, self.tracking_token or store.token)


def _own_files(folder: Path) -> Iterator[Path]:
    """The files in a training's folder. What is only linked there, as checkpoints are, is kept elsewhere, and a pickle of an
    error is for this machine: others read it as a text."""
    for root, _, names in os.walk(folder):
        files = (Path(root, name) for name in sorted(names) if name != ERROR_PICKLE)
        yield from (file for file in files if not file.is_symlink())


def store_of(config: RunConfig) -> TrackingStore:
    """The store of a training: the one that its MLflowLoggerCallback names, or else the current one."""
    store = current_store()
    for callback in config.callbacks or ():
        if isinstance(callback, MLflowLoggerCallback):
            store = callback.store_instead_of(store)
    return store
