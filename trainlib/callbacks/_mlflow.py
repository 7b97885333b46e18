"""MLflow, which trainlib records every training in anyway."""

from __future__ import annotations

import os
from typing import Any

from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["MLflowLoggerCallback"]


class MLflowLoggerCallback(LoggerCallback):
    """Names the experiment and tags of the training's MLflow run. It makes no second run.

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
        if registry_uri is not None and registry_uri != tracking_uri:
            raise ValueError("registry_uri is not supported apart from tracking_uri: models are kept with their runs")
        self.tracking_uri = tracking_uri
        self.experiment_name = experiment_name
        self.tags = {key: str(value) for key, value in (tags or {}).items()}
        self.tracking_token = tracking_token
        self.save_artifact = save_artifact

    def use_store(self) -> None:
        """Make the given store the one of this process, as ``mlflow.set_tracking_uri`` would."""
        if self.tracking_uri:
            os.environ["MLFLOW_TRACKING_URI"] = self.tracking_uri
        if self.tracking_token:
            os.environ["MLFLOW_TRACKING_TOKEN"] = self.tracking_token

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if self.save_artifact:
            from mlflow import MlflowClient

            from trainlib._registry.client import tracking_uri

            MlflowClient(tracking_uri()).log_artifacts(trial.run_id, trial.local_path, "logs")
