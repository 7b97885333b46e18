"""Logs results for TensorBoard."""

from __future__ import annotations

from typing import Any

from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["TBXLoggerCallback"]


class TBXLoggerCallback(LoggerCallback):
    """Writes TensorBoard event files into the training's log directory, with tensorboardX.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[TBXLoggerCallback()]).callbacks[0].__class__.__name__
        'TBXLoggerCallback'
    """

    def __init__(self) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise ImportError("TBXLoggerCallback needs tensorboardX: pip install 'trainlib[tensorboard]'") from error
        self._open = SummaryWriter
        self._writers: dict[Trial, Any] = {}

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        if trial not in self._writers:
            trial.init_local_path()
            self._writers[trial] = self._open(trial.local_path, flush_secs=30)
        step = result["training_iteration"]
        for name, value in result.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self._writers[trial].add_scalar(f"ray/tune/{name}", value, global_step=step)

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if trial in self._writers:
            self._writers.pop(trial).close()
