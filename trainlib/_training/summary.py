"""What came of a training, for people: its metrics, its attempts and its checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainlib._autofilled import FILLED_IN
from trainlib._registry.attempts import AttemptRecord
from trainlib._registry.retention import SavedCheckpoint

__all__ = ["MetricCurve", "TrainingSummary", "curves_of"]

# What counts how far a training is, and is no result of it.
_COUNTERS = frozenset({"epoch", "step", "iteration"})


@dataclass(frozen=True)
class TrainingSummary:
    """How a training went, through all of its attempts."""

    name: str
    url: str
    """Its page in MLflow."""
    artifacts: str
    """Where its checkpoints are."""
    attempts: tuple[AttemptRecord, ...]
    checkpoints: tuple[SavedCheckpoint, ...]
    """Those that are kept, the best one first."""
    score: str | None
    """The metric that ranks checkpoints, if there is one."""
    order: str
    """``max`` if a high score is better, else ``min``."""
    rows: Sequence[Mapping[str, Any]]
    """What was reported, one row an iteration. They are read when they are asked for."""
    error: BaseException | None
    """What it ended with, if it did not succeed."""


@dataclass(frozen=True)
class MetricCurve:
    """How a metric went."""

    name: str
    points: tuple[tuple[int, float], ...]
    """Iterations and values, in order. None is NaN or infinite."""

    @property
    def last(self) -> tuple[int, float]:
        return self.points[-1]

    @property
    def lowest(self) -> tuple[int, float]:
        return min(self.points, key=lambda point: point[1])

    @property
    def highest(self) -> tuple[int, float]:
        return max(self.points, key=lambda point: point[1])


def curves_of(rows: Iterable[Mapping[str, Any]], first: str | None = None) -> list[MetricCurve]:
    """The curves of all numbers that a training reported; that of ``first`` comes first.

    Counters, such as ``epoch``, are left out if there is anything else.

    Example:
        >>> rows = [{"training_iteration": 1, "epoch": 0, "loss": 2.0}, {"training_iteration": 2, "epoch": 1, "loss": 1.0}]
        >>> curves_of(rows)
        [MetricCurve(name='loss', points=((1, 2.0), (2, 1.0)))]
    """
    points: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in row.items():
            if name in FILLED_IN or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if math.isfinite(value):
                points.setdefault(name, []).append((row["training_iteration"], float(value)))
    shown = [name for name in points if name not in _COUNTERS] or list(points)
    names = sorted(shown, key=lambda name: name != first)  # stable: the others stay as they were reported
    return [MetricCurve(name, tuple(points[name])) for name in names]
