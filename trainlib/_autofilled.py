"""What each result has besides what the training function reported, as Ray's guides show it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from trainlib._flat import flattened

__all__ = ["CONSTANTS", "FILLED_IN", "IN_EACH_ROW", "as_reported", "columns_of", "date_of"]

IN_EACH_ROW = ("training_iteration", "timestamp", "_time_this_iter_s", "time_this_iter_s", "time_total_s")
"""What differs from row to row. The rows of a training keep these, and nothing else of it."""

_OF_AN_ATTEMPT = ("time_since_restore", "iterations_since_restore", "warmup_time", "pid", "hostname", "node_ip")

CONSTANTS: dict[str, Any] = {"timesteps_total": None, "episodes_total": None, "timesteps_since_restore": 0}
"""What is the same in every result of every training."""

_OF_A_TRAINING = ("trial_id", "experiment_id", "experiment_tag", "config")
_FROM_THE_CLOCK = ("_timestamp", "_training_iteration", "date", "done")

FILLED_IN = frozenset({*IN_EACH_ROW, *CONSTANTS, *_OF_AN_ATTEMPT, *_OF_A_TRAINING, *_FROM_THE_CLOCK})
"""The names of all that is filled in."""


def as_reported(result: Mapping[Any, Any]) -> dict[Any, Any]:
    """What the training function reported of a result.

    Example:
        >>> as_reported({"loss": 0.5, "training_iteration": 1, "pid": 7})
        {'loss': 0.5}
    """
    return {name: value for name, value in result.items() if name not in FILLED_IN}


@lru_cache(maxsize=1)
def date_of(timestamp: int) -> str:
    """A second, as Ray writes it. A fast training reports thousands of times in each."""
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d_%H-%M-%S")


def columns_of(rows: Iterable[Mapping[str, Any]], last: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Rows as columns, without holding all rows at once. What a row lacks is NaN.

    What is filled in and not kept with each row is filled in here. The config has a column, and one for each of its values.

    Args:
        rows: One for each iteration.
        last: The last result, with all that is filled in.

    Example:
        >>> columns_of([{"loss": 0.5}, {"loss": 0.25, "accuracy": 1}], {"trial_id": "4913f_00000"})
        {'loss': [0.5, 0.25], 'accuracy': [nan, 1], 'trial_id': ['4913f_00000', '4913f_00000']}
    """
    columns, count = _transposed(rows)
    if "timestamp" in columns:
        columns["_timestamp"] = columns["timestamp"]
        columns["date"] = [date_of(moment) if moment == moment else math.nan for moment in columns["timestamp"]]
    if "training_iteration" in columns:
        columns["_training_iteration"] = columns["training_iteration"]
    if "done" in last and count:
        columns["done"] = [*[False] * (count - 1), last["done"]]
    for name in (*CONSTANTS, *_OF_A_TRAINING):
        if name in last:
            columns[name] = [last[name]] * count
    for name, value in flattened(last.get("config") or {}, "config/").items():
        columns.setdefault(name, [value] * count)
    return columns


def _transposed(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, list[Any]], int]:
    columns: dict[str, list[Any]] = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column += [math.nan] * (count - len(column))
            column.append(value)
        count += 1
    for column in columns.values():
        column += [math.nan] * (count - len(column))
    return columns, count
