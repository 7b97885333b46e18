"""Logs results as lines of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from trainlib._json_text import as_json
from trainlib._secrets import masked
from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["JsonLoggerCallback"]


class JsonLoggerCallback(LoggerCallback):
    """Writes ``result.json``, one line per result, and ``params.json`` into the training's log directory, without the config's secrets.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[JsonLoggerCallback()]).callbacks[0].__class__.__name__
        'JsonLoggerCallback'
    """

    log_files = ("params.json", "result.json")

    def __init__(self) -> None:
        self._files: dict[Trial, IO[str]] = {}

    def log_trial_start(self, trial: Trial) -> None:
        trial.init_local_path()
        Path(trial.local_path, "params.json").write_text(as_json(masked(trial.config), indent=2))

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        if trial not in self._files:
            self._files[trial] = open(Path(trial.local_path, "result.json"), "a")  # noqa: SIM115
        self._files[trial].write(as_json({**result, "config": masked(result.get("config", {}))}) + "\n")
        self._files[trial].flush()

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        if trial in self._files:
            self._files.pop(trial).close()
