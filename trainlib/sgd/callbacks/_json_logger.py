"""Logs what ranks report into a JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainlib.sgd.callbacks._callback import SGDCallback, chosen_ranks

__all__ = ["JsonLoggerCallback"]

_END = "\n]\n"


class JsonLoggerCallback(SGDCallback):
    """Writes ``results.json`` into the folder of each run: a list that has, for each report, a list of the workers' results.

    JSON has no word for NaN and infinity: they are written as null.

    Example:
        >>> from trainlib.sgd import JsonLoggerCallback
        >>> JsonLoggerCallback(workers_to_log=None).workers_to_log is None
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str] | None = None,
        filename: str = "results.json",
        workers_to_log: int | Sequence[int] | None = 0,
    ) -> None:
        """
        Args:
            logdir: The folder of the file. Default: that of the run.
            filename: The name of the file.
            workers_to_log: One worker's rank, or several. None logs all workers.
        """
        self.workers_to_log = [workers_to_log] if isinstance(workers_to_log, int) else workers_to_log
        self.log_path: Path | None = None
        """The file of the latest run."""
        self._logdir = logdir
        self._filename = filename
        self._is_empty = True

    def start_training(self, logdir: str, **info: Any) -> None:
        folder = Path(self._logdir or logdir)
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / self._filename
        self.log_path.write_text(f"[{_END}")
        self._is_empty = True

    def handle_result(self, results: list[dict[str, Any]], **info: Any) -> None:
        assert self.log_path is not None
        # The end of the list is written again, so that the file is valid JSON at any time.
        with open(self.log_path, "r+") as file:
            file.seek(self.log_path.stat().st_size - len(_END))
            chosen = json.dumps(_plain(chosen_ranks(results, self.workers_to_log)), default=repr, allow_nan=False)
            file.write(f"{'' if self._is_empty else ','}\n{chosen}{_END}")
        self._is_empty = False


def _plain(value: Any) -> Any:
    """A value without the numbers that JSON has no word for.

    Example:
        >>> _plain({"loss": float("nan"), "val": [0.5, float("inf")]})
        {'loss': None, 'val': [0.5, None]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()  # an array, or a number of another library
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
