"""Stoppers for ``RunConfig.stop``: they end a trial or a whole sweep."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from datetime import timedelta
from statistics import pstdev
from typing import Any, Literal

__all__ = [
    "CombinedStopper",
    "ExperimentPlateauStopper",
    "FunctionStopper",
    "MaximumIterationStopper",
    "Stopper",
    "TimeoutStopper",
    "TrialPlateauStopper",
]


class Stopper:
    """Decides after each result whether its trial ends. One stopper sees all trials of a sweep.

    Example:
        >>> class WhenGoodEnough(Stopper):
        ...     def __call__(self, trial_id, result):
        ...         return result["accuracy"] > 0.95
        >>> WhenGoodEnough()("a", {"accuracy": 0.97})
        True
    """

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether this trial ends now."""
        raise NotImplementedError(
            f"{type(self).__name__} has no __call__(trial_id, result): define it to decide when a trial ends"
        )

    def stop_all(self) -> bool:
        """Whether the sweep ends now."""
        return False


class MaximumIterationStopper(Stopper):
    """Ends a trial after ``max_iter`` results.

    Example:
        >>> stop = MaximumIterationStopper(max_iter=2)
        >>> stop("a", {}), stop("a", {})
        (False, True)
    """

    def __init__(self, max_iter: int) -> None:
        self._max_iter = max_iter
        self._iterations: dict[str, int] = defaultdict(int)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        self._iterations[trial_id] = result.get("training_iteration", self._iterations[trial_id] + 1)
        return self._iterations[trial_id] >= self._max_iter


class FunctionStopper(Stopper):
    """Ends a trial when a function of its id and its result returns True.

    Example:
        >>> FunctionStopper(lambda trial_id, result: result["loss"] < 0.1)("a", {"loss": 0.05})
        True
    """

    def __init__(self, function: Callable[[str, dict[str, Any]], bool]) -> None:
        self._function = function

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return bool(self._function(trial_id, result))


class TrialPlateauStopper(Stopper):
    """Ends a trial whose metric no longer changes.

    Example:
        >>> stop = TrialPlateauStopper("loss", std=0.01, num_results=2, grace_period=2)
        >>> [stop("a", {"loss": loss}) for loss in (0.5, 0.3, 0.3)]
        [False, False, True]
    """

    def __init__(
        self,
        metric: str,
        std: float = 0.01,
        num_results: int = 4,
        grace_period: int = 4,
        metric_threshold: float | None = None,
        mode: Literal["max", "min"] | None = None,
    ) -> None:
        """With ``metric_threshold``, only trials end whose metric is at least that (with ``mode="min"``: at most)."""
        if metric_threshold is not None and mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: a metric_threshold needs 'max' or 'min'")
        self._metric = metric
        self._std = std
        self._num_results = num_results
        self._grace_period = grace_period
        self._threshold = metric_threshold
        self._mode = mode
        self._counts: dict[str, int] = defaultdict(int)
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=num_results))

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        value = float(result[self._metric])
        self._counts[trial_id] += 1
        recent = self._recent[trial_id]
        recent.append(value)
        if self._counts[trial_id] < self._grace_period or len(recent) < self._num_results:
            return False
        if self._threshold is not None:
            short = value < self._threshold if self._mode == "max" else value > self._threshold
            if short:
                return False
        return pstdev(recent) < self._std


class ExperimentPlateauStopper(Stopper):
    """Ends the sweep when the best results no longer improve.

    Example:
        >>> stop = ExperimentPlateauStopper("loss", std=0.01, top=2, mode="min")
        >>> _ = [stop(str(i), {"loss": 0.5}) for i in range(3)]
        >>> stop.stop_all()
        True
    """

    def __init__(
        self, metric: str, std: float = 0.001, top: int = 10, mode: Literal["max", "min"] = "min", patience: int = 0
    ) -> None:
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        if top < 2:
            raise ValueError(f"top is {top}: set it to 2 or more, since a plateau takes two results")
        self._metric = metric
        self._std = std
        self._top = top
        self._mode = mode
        self._patience = patience
        self._best: list[float] = []
        self._flat_for = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        ranked = sorted([*self._best, float(result[self._metric])], reverse=self._mode == "max")
        self._best = ranked[: self._top]
        flat = len(self._best) == self._top and pstdev(self._best) <= self._std
        self._flat_for = self._flat_for + 1 if flat else 0
        return self.stop_all()

    def stop_all(self) -> bool:
        return self._flat_for > self._patience


class TimeoutStopper(Stopper):
    """Ends the sweep after a time, counted from when the stopper is created. A restored sweep starts counting again.

    Example:
        >>> TimeoutStopper(3600).stop_all()
        False
    """

    def __init__(self, timeout: float | timedelta) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
        if not seconds > 0:
            raise ValueError(f"timeout is {seconds:g} s, so no trial could run: set it to more than 0")
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def __reduce__(self) -> Any:
        return TimeoutStopper, (self._seconds,)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return time.monotonic() >= self._deadline


class CombinedStopper(Stopper):
    """Ends a trial or the sweep as soon as one of several stoppers does.

    Example:
        >>> stop = CombinedStopper(MaximumIterationStopper(5), FunctionStopper(lambda _, result: result["loss"] < 0.1))
        >>> stop("a", {"loss": 0.05})
        True
    """

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        said = [stopper(trial_id, result) for stopper in self._stoppers]  # a list, so that each sees the result
        return any(said)

    def stop_all(self) -> bool:
        return any(stopper.stop_all() for stopper in self._stoppers)
