"""Logs what ranks report for TensorBoard."""

from __future__ import annotations

import os
from typing import Any

from trainlib.callbacks._tensorboard import load_writer, write_scalars
from trainlib.sgd.callbacks._callback import SGDCallback, chosen_ranks

__all__ = ["TBXLoggerCallback"]


class TBXLoggerCallback(SGDCallback):
    """Writes TensorBoard event files into the folder of each run, with tensorboardX.

    Example:
        >>> from trainlib.sgd import TBXLoggerCallback
        >>> TBXLoggerCallback(worker_to_log=1).worker_to_log
        1
    """

    def __init__(self, logdir: str | os.PathLike[str] | None = None, worker_to_log: int = 0) -> None:
        """
        Args:
            logdir: The folder of the files. Default: that of the run.
            worker_to_log: The rank whose results are logged.
        """
        self.worker_to_log = worker_to_log
        self._open = load_writer()
        self._logdir = logdir
        self._writer: Any = None

    def start_training(self, logdir: str, **info: Any) -> None:
        self._writer = self._open(os.fspath(self._logdir or logdir), flush_secs=30)

    def handle_result(self, results: list[dict[str, Any]], **info: Any) -> None:
        (result,) = chosen_ranks(results, [self.worker_to_log])
        write_scalars(self._writer, result, step=result["_training_iteration"])

    def finish_training(self, error: bool = False, **info: Any) -> None:
        if self._writer is not None:
            self._writer.close()
