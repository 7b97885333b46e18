"""The median stopping rule."""

from __future__ import annotations

import math
from statistics import fmean, median
from typing import Any

from trainlib.tune.schedulers._scheduler import Mode, TrialScheduler, Verdict

__all__ = ["MedianStoppingRule"]


class MedianStoppingRule(TrialScheduler):
    """Stops a trial whose best score so far is worse than the median of the other trials' averages up to that time.

    Example:
        >>> from trainlib.tune.schedulers import MedianStoppingRule
        >>> rule = MedianStoppingRule("training_iteration", "loss", "min", grace_period=1, min_samples_required=2)
        >>> results = [(0, 0.1), (1, 0.2), (2, 0.9)]
        >>> [rule.on_result(trial, {"loss": loss, "training_iteration": 1}).value for trial, loss in results]
        ['continue', 'continue', 'stop']
    """

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: str | None = None,
        mode: Mode | None = None,
        grace_period: float = 60.0,
        min_samples_required: int = 3,
        min_time_slice: float = 0,
        hard_stop: bool = True,
    ) -> None:
        """A rule.

        Args:
            time_attr: the metric that measures time, e.g. ``training_iteration``.
            metric: the metric to compare. Default: as in TuneConfig.
            mode: ``max`` if a high value is better, else ``min``.
            grace_period: a trial is not stopped before this time.
            min_samples_required: how many other trials are needed to compare with.
            min_time_slice: the least time between two comparisons of one trial.
            hard_stop: must be True. Pausing trials instead is not supported.
        """
        super().__init__(time_attr=time_attr, metric=metric, mode=mode)
        if not hard_stop:
            raise ValueError("hard_stop=False is not supported: a stopped trial is not resumed. Leave it out")
        self._grace_period = grace_period
        self._min_samples = min_samples_required
        self._min_time_slice = min_time_slice
        self._results: dict[int, list[tuple[float, float]]] = {}
        self._compared_at: dict[int, float] = {}

    def on_result(self, trial: int, result: dict[str, Any], *, others_wait: bool = False) -> Verdict:
        time = self.time(result)
        own = self._results.setdefault(trial, [])
        own.append((time, _worst_if_nan(self.score(result))))
        if time < self._grace_period or time - self._compared_at.get(trial, 0.0) < self._min_time_slice:
            return Verdict.CONTINUE
        self._compared_at[trial] = time
        averages = averages_until(time, {other: rows for other, rows in self._results.items() if other != trial})
        if len(averages) < self._min_samples:
            return Verdict.CONTINUE
        return Verdict.STOP if max(score for _, score in own) < median(averages) else Verdict.CONTINUE


def _worst_if_nan(score: float) -> float:
    """NaN counts as worse than any number."""
    return -math.inf if math.isnan(score) else score


def averages_until(time: float, results: dict[int, list[tuple[float, float]]]) -> list[float]:
    """The average score up to a time, for each trial that has one.

    Example:
        >>> averages_until(2, {0: [(1, 0.5), (2, 1.5), (3, 9.0)], 1: [(5, 1.0)]})
        [1.0]
    """
    upto = ([score for at, score in rows if at <= time and math.isfinite(score)] for rows in results.values())
    return [fmean(scores) for scores in upto if scores]
