"""Whether a training has gone wrong, by what it reports: NaN, or a metric far beyond its best value. Pure.

Rank 0 asks before it saves a checkpoint, and the process that coordinates the ranks asks whether to go on. Both see the same
reports in the same order, and so come to the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from trainlib.config import DivergenceConfig, RunConfig
from trainlib.result import Stopped, StopReason

__all__ = ["DivergenceWatch"]


class DivergenceWatch:
    """Follows the reports of one attempt."""

    def __init__(self, *, stop_on_nan: bool = False, divergence: DivergenceConfig | None = None) -> None:
        self._stop_on_nan = stop_on_nan
        self._config = divergence
        self._best: float | None = None
        self._beyond = 0
        """How many reports in a row were beyond the limit."""
        self._is_nan = False

    @classmethod
    def of(cls, config: RunConfig) -> DivergenceWatch:
        """For an attempt of a training with these settings."""
        return cls(stop_on_nan=config.stop_on_nan, divergence=config.divergence)

    @property
    def is_on(self) -> bool:
        """Whether there is anything to watch."""
        return self._stop_on_nan or self._config is not None

    @property
    def is_well(self) -> bool:
        """Whether the latest report was within all limits, so that a checkpoint made now is worth keeping."""
        return not self._is_nan and self._beyond == 0

    def inspect(self, iteration: int, metrics: Mapping[str, float]) -> Stopped | None:
        """Take a report in. Gives why the training ends, if it does.

        Example:
            >>> watch = DivergenceWatch(stop_on_nan=True)
            >>> watch.inspect(1, {"loss": 0.5}), str(watch.inspect(2, {"loss": math.nan}))
            (None, 'loss is NaN at iteration 2 (RunConfig.stop_on_nan)')
        """
        diverged = self._inspect_metric(iteration, metrics) if self._config is not None else None
        # A number that differs from itself is NaN. math.isnan() refuses integers that are too large for a float.
        bad = [name for name, value in metrics.items() if value != value] if self._stop_on_nan else []
        self._is_nan = bool(bad)
        if bad:
            are = "is" if len(bad) == 1 else "are"
            return Stopped(
                StopReason.NAN, f"{', '.join(bad)} {are} NaN at iteration {iteration} (RunConfig.stop_on_nan)"
            )
        return diverged

    def _inspect_metric(self, iteration: int, metrics: Mapping[str, float]) -> Stopped | None:
        assert self._config is not None
        name = self._config.metric
        if name not in metrics:  # e.g. one that is reported every tenth time
            return None
        value = float(metrics[name])
        limit = self._exceeded(value)
        if limit is None:
            self._beyond = 0
            self._best = value if self._best is None else min(self._best, value)
            return None
        self._beyond += 1
        if self._beyond < self._config.patience:
            return None
        times = f" for {self._beyond} reports in a row" if self._beyond > 1 else ""
        return Stopped(
            StopReason.DIVERGED,
            f"{name} is {value:.4g} at iteration {iteration}, {limit}{times} (RunConfig.divergence)",
        )

    def _exceeded(self, value: float) -> str | None:
        """The limit that a value is beyond, in words."""
        assert self._config is not None
        if not math.isfinite(value):
            return "which is not a finite number"
        if self._config.bound is not None and value > self._config.bound:
            return f"above the bound of {self._config.bound:g}"
        factor, best = self._config.factor, self._best
        # Of 0, every value is infinitely many times. A negative one, such as a log likelihood, grows by as much as a positive.
        if factor is not None and best and value > best + (factor - 1) * abs(best):
            return f"more than {factor:g} times its best, {best:.4g},"
        return None
