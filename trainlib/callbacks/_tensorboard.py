"""Logs results for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlib._flat import flattened
from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["TBXLoggerCallback", "load_writer", "write_scalars"]


class TBXLoggerCallback(LoggerCallback):
    """Writes TensorBoard event files into the training's log directory, with tensorboardX.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[TBXLoggerCallback()]).callbacks[0].__class__.__name__
        'TBXLoggerCallback'
    """

    def __init__(self) -> None:
        self._open = load_writer()
        self._writers: dict[Trial, Any] = {}

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        if trial not in self._writers:
            trial.init_local_path()
            self._writers[trial] = self._open(trial.local_path, flush_secs=30)
        write_scalars(self._writers[trial], result, step=result["training_iteration"])

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if trial in self._writers:
            self._writers.pop(trial).close()


def load_writer() -> Any:
    """The class of tensorboardX that writes event files.

    Raises:
        ImportError: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError("TBXLoggerCallback needs tensorboardX: pip install 'trainlib[tensorboard]'") from error
    return SummaryWriter


def write_scalars(writer: Any, result: Mapping[str, Any], *, step: int) -> None:
    """Write the numbers of a result."""
    for name, value in flattened({**result, "config": None}).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            writer.add_scalar(f"ray/tune/{name}", value, global_step=step)
