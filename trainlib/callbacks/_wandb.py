"""Logs results to Weights & Biases."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from trainlib import _storage as storage
from trainlib._secrets import masked
from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["WandbLoggerCallback"]

# They are the same in each result, or W&B has its own.
_LEFT_OUT = frozenset(
    {"config", "done", "trial_id", "experiment_id", "experiment_tag", "hostname", "node_ip", "pid", "date"}
)


class WandbLoggerCallback(LoggerCallback):
    """Logs a training as a run in Weights & Biases, besides MLflow. A sweep has a run for each trial.

    Whether it is sent at once is up to W&B's own settings: with ``WANDB_MODE=offline``, it is written into the training's log
    directory, and sent by ``wandb sync``.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[WandbLoggerCallback(project="digits")]).callbacks[0].project
        'digits'
    """

    def __init__(
        self,
        project: str | None = None,
        group: str | None = None,
        *,
        api_key_file: str | None = None,
        api_key: str | None = None,
        excludes: Collection[str] | None = None,
        log_config: bool = False,
        upload_checkpoints: bool = False,
        **init: Any,
    ) -> None:
        """
        Args:
            project: The project in W&B. Default: as W&B is set up, e.g. by ``WANDB_PROJECT``.
            group: The group of runs. Default: none.
            api_key_file: A file with the API key.
            api_key: The API key. Without either, W&B looks for ``WANDB_API_KEY`` and for what ``wandb login`` has left.
            excludes: Metrics that are not logged.
            log_config: Whether the config is logged with each result. It is always logged once.
            upload_checkpoints: Whether checkpoints are saved in W&B, too, as artifacts.
            init: Further arguments of ``wandb.init``, e.g. ``tags=["mine"]``.

        Raises:
            ImportError: wandb is not installed.
            ValueError: there are two API keys.
            OSError: the file with the API key cannot be read.
        """
        try:
            import wandb
        except ImportError as error:
            raise ImportError("WandbLoggerCallback needs wandb: pip install 'trainlib[wandb]'") from error
        if api_key and api_key_file:
            raise ValueError("api_key and api_key_file are both given: pass one of them")
        self.project = project
        self.group = group
        self.upload_checkpoints = upload_checkpoints
        self._wandb = wandb
        self._api_key = Path(api_key_file).expanduser().read_text().strip() if api_key_file else api_key
        self._excludes = {*(_LEFT_OUT - {"config"} if log_config else _LEFT_OUT), *(excludes or ())}
        self._init = init
        self._runs: dict[Trial, Any] = {}

    def log_trial_start(self, trial: Trial) -> None:
        trial.init_local_path()
        login = {"settings": self._wandb.Settings(api_key=self._api_key)} if self._api_key else {}
        arguments = {
            "id": trial.run_id,  # a training that is continued continues its run
            "resume": "allow",
            "name": str(trial),
            "project": self.project,
            "group": self.group,
            "dir": trial.local_path,
            "config": masked(trial.config),
            "reinit": "create_new",  # trials run side by side
            **login,
            **self._init,
        }
        self._runs[trial] = self._wandb.init(**arguments)

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        if trial in self._runs:
            shown = {**result, "config": masked(trial.config)}
            logged = {name: value for name, value in shown.items() if name not in self._excludes}
            self._runs[trial].log(logged, step=iteration)

    def log_trial_save(self, trial: Trial) -> None:
        if not (self.upload_checkpoints and trial in self._runs and trial.checkpoint is not None):
            return
        artifact = self._wandb.Artifact(f"checkpoint_{trial.run_id}", type="model")
        kept = storage.local_path(trial.checkpoint.path) if trial.checkpoint.uri is not None else None
        if kept is not None:
            artifact.add_dir(str(kept))
        elif trial.checkpoint.uri is not None:
            artifact.add_reference(trial.checkpoint.path, checksum=False)
        else:  # it is in memory alone
            with trial.checkpoint.as_directory() as files:
                artifact.add_dir(files)
        self._runs[trial].log_artifact(artifact)

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if trial in self._runs:
            self._runs.pop(trial).finish(exit_code=int(failed))
