"""Logs results as a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from trainlib._secrets import masked
from trainlib.callbacks._callback import LoggerCallback, Trial

__all__ = ["CSVLoggerCallback"]

_FILE = "progress.csv"


class CSVLoggerCallback(LoggerCallback):
    """Writes ``progress.csv``, one row per result, into the training's log directory. Nested values are columns ``a/b``.

    Example:
        >>> from trainlib import RunConfig
        >>> RunConfig(callbacks=[CSVLoggerCallback()]).callbacks[0].__class__.__name__
        'CSVLoggerCallback'
    """

    log_files = (_FILE,)

    def __init__(self) -> None:
        self._columns: dict[Trial, list[str]] = {}

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        trial.init_local_path()
        file, row = Path(trial.local_path, _FILE), _flat({**result, "config": masked(result.get("config", {}))})
        columns = self._columns.get(trial) or _columns_of(file)
        if new := [name for name in row if name not in columns]:
            columns = [*columns, *new]
            _rewrite(file, columns)
        self._columns[trial] = columns
        with open(file, "a", newline="") as table:
            csv.DictWriter(table, columns).writerow(row)

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        self._columns.pop(trial, None)


def _columns_of(file: Path) -> list[str]:
    """The columns of a table that an earlier process has begun."""
    if not file.exists():
        return []
    with open(file, newline="") as table:
        return next(csv.reader(table), [])


def _rewrite(file: Path, columns: list[str]) -> None:
    """Give a table more columns. That a result has a new metric is rare, so its rows are simply written again."""
    rows: list[dict[str, Any]] = []
    if file.exists():
        with open(file, newline="") as table:
            rows = list(csv.DictReader(table))
    whole = file.with_suffix(".new")
    with open(whole, "w", newline="") as table:
        writer = csv.DictWriter(table, columns)
        writer.writeheader()
        writer.writerows(rows)
    whole.replace(file)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values as columns.

    Example:
        >>> _flat({"loss": 0.5, "val": {"acc": 1}})
        {'loss': 0.5, 'val/acc': 1}
    """
    columns: dict[str, Any] = {}
    for key, value in values.items():
        columns |= _flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return columns
