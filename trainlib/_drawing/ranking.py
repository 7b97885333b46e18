"""The trials of a sweep in the order in which they are drawn: the best one first. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainlib._registry.params import flat
from trainlib._training.summary import MetricCurve, curves_of
from trainlib.result import Result
from trainlib.tune._result_grid import ResultGrid, score_of

__all__ = ["RankedTrial", "ranked"]


@dataclass(frozen=True)
class RankedTrial:
    """A trial, as it is drawn."""

    number: int
    result: Result
    params: dict[str, Any]
    """What differs between the trials."""
    score: float | None
    """The last value of the metric."""
    curve: MetricCurve | None
    """How the metric went. None if it was not reported, or never finite."""

    @property
    def title(self) -> str:
        """What tells it from the others.

        Example:
            >>> RankedTrial(3, Result(), {"lr": 0.1}, None, None).title
            'trial 3 · lr=0.1'
        """
        return " · ".join([f"trial {self.number}", *(f"{name}={value}" for name, value in self.params.items())])


def ranked(grid: ResultGrid, metric: str | None, mode: str | None) -> tuple[list[RankedTrial], str | None]:
    """The trials with the best one first, and the metric that they are compared by.

    Args:
        grid: The results.
        metric: Default: as in TuneConfig, or else the first one that was reported.
        mode: Default: as in TuneConfig, or else ``min``. Without a metric to compare by, trials stay in their order.
    """
    is_compared = (metric or grid.metric) is not None
    metric, mode = metric or grid.metric or _first_metric(grid), mode or grid.mode or "min"
    if mode not in ("max", "min"):
        raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
    trials = [
        RankedTrial(number, result, params, _score(result, metric, mode), _curve(result, metric))
        for number, (result, params) in enumerate(zip(grid, _differing(grid), strict=True))
    ]
    if is_compared:
        trials.sort(key=lambda trial: _order(trial, mode))
    return trials, metric


def _order(trial: RankedTrial, mode: str) -> tuple[bool, float]:
    """Failed trials, those that diverged, and those without a finite value come last."""
    stopped = trial.result.stopped
    is_sound = trial.result.error is None and (stopped is None or not stopped.reason.is_divergence)
    if trial.score is None or not math.isfinite(trial.score):
        return True, math.inf
    return not is_sound, -trial.score if mode == "max" else trial.score


def _score(result: Result, metric: str | None, mode: str) -> float | None:
    return score_of(result, metric, mode, "last") if metric is not None else None


def _curve(result: Result, metric: str | None) -> MetricCurve | None:
    return next((curve for curve in curves_of(result.history, first=metric) if curve.name == metric), None)


def _first_metric(grid: ResultGrid) -> str | None:
    for result in grid:
        for curve in curves_of(result.history):
            return curve.name
    return None


def _differing(grid: ResultGrid) -> list[dict[str, Any]]:
    """What each trial's config has that others do not."""
    configs: Sequence[dict[str, Any]] = [flat(result.config) for result in grid]
    names = list(dict.fromkeys(name for config in configs for name in config))
    differing = [name for name in names if len({repr(config.get(name)) for config in configs}) > 1]
    return [{name: config[name] for name in differing if name in config} for config in configs]
