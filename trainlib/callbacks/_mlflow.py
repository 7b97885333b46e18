"""MLflow, which trainlib records every training in anyway."""

from __future__ import annotations

from typing import Any

from trainlib._registry.store import TrackingStore, absolute_uri, current_store
from trainlib.callbacks._callback import LoggerCallback, Trial
from trainlib.config import RunConfig

__all__ = ["MLflowLoggerCallback"]


class MLflowLoggerCallback(LoggerCallback):
    """Says where the MLflow run of a training is kept, and with which experiment and tags. It makes no second run.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[MLflowLoggerCallback(experiment_name="digits")]).callbacks[0].experiment_name
        'digits'
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        registry_uri: str | None = None,
        experiment_name: str | None = None,
        tags: dict[str, Any] | None = None,
        tracking_token: str | None = None,
        save_artifact: bool = False,
    ) -> None:
        """
        Args:
            tracking_uri: The store of the training, instead of the one that ``MLFLOW_TRACKING_URI`` names.
            registry_uri: If given, it has to be the same as ``tracking_uri``.
            experiment_name: The MLflow experiment of the training.
            tags: Tags of its MLflow run.
            tracking_token: The token that the tracking server asks for. To read checkpoints from that server after the
                training, set ``MLFLOW_TRACKING_TOKEN``.
            save_artifact: Whether the files in the training's folder are saved with the run when it ends.
        """
        if registry_uri is not None and registry_uri != tracking_uri:
            raise ValueError(
                f"registry_uri is {registry_uri!r}, but tracking_uri is {tracking_uri!r}. Models are kept with their runs: "
                "leave registry_uri out, or pass the same for both."
            )
        self.tracking_uri = tracking_uri
        self.experiment_name = experiment_name
        self.tags = {key: str(value) for key, value in (tags or {}).items()}
        self.tracking_token = tracking_token
        self.save_artifact = save_artifact

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if self.save_artifact:
            from mlflow import MlflowClient

            store = self.store_instead_of(current_store())
            MlflowClient(store.uri).log_artifacts(trial.run_id, trial.local_path, "logs")

    def store_instead_of(self, store: TrackingStore) -> TrackingStore:
        """The store that this names. What it leaves open is as in the given one."""
        uri = absolute_uri(self.tracking_uri) if self.tracking_uri else store.uri
        return TrackingStore(uri, self.tracking_token or store.token)


def store_of(config: RunConfig) -> TrackingStore:
    """The store of a training: the one that its MLflowLoggerCallback names, or else the current one."""
    store = current_store()
    for callback in config.callbacks or ():
        if isinstance(callback, MLflowLoggerCallback):
            store = callback.store_instead_of(store)
    return store
