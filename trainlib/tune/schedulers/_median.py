"""The median stopping rule."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from statistics import median
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
        self._scores: dict[int, Scores] = {}
        self._compared_at: dict[int, float] = {}

    def on_result(self, trial: int, result: dict[str, Any], *, others_wait: bool = False) -> Verdict:
        time = self.time(result)
        own = self._scores.setdefault(trial, Scores())
        own.add(time, self.score(result))
        if time < self._grace_period or time - self._compared_at.get(trial, 0.0) < self._min_time_slice:
            return Verdict.CONTINUE
        self._compared_at[trial] = time
        others = (scores.average_until(time) for other, scores in self._scores.items() if other != trial)
        averages = [average for average in others if average is not None]
        if len(averages) < self._min_samples:
            return Verdict.CONTINUE
        return Verdict.STOP if own.best < median(averages) else Verdict.CONTINUE


class Scores:
    """The scores of a trial over time, 16 bytes each. Its average up to a time takes no longer the more there are.

    Example:
        >>> scores = Scores()
        >>> for time, score in ((1, 0.5), (2, 1.5), (3, math.nan), (4, 7.0)):
        ...     scores.add(time, score)
        >>> scores.average_until(3), scores.average_until(0.5), scores.best
        (1.0, None, 7.0)
    """

    def __init__(self) -> None:
        self.best = -math.inf
        """The best one. NaN counts as worse than any number."""
        self._times = array("d")
        self._sums = array("d")
        """The sum of all finite scores up to each time."""

    def add(self, time: float, score: float) -> None:
        """Add a score. What a retry repeats, from an earlier time on, replaces what was there."""
        if not math.isnan(score):
            self.best = max(self.best, score)
        if math.isfinite(score):
            first = bisect_left(self._times, time)
            del self._times[first:], self._sums[first:]
            self._times.append(time)
            self._sums.append(score + (self._sums[-1] if self._sums else 0.0))

    def average_until(self, time: float) -> float | None:
        """The average of the finite ones up to a time; None if there are none."""
        count = bisect_right(self._times, time)
        return self._sums[count - 1] / count if count else None
