"""Asynchronous successive halving: at each rung, only the best of the trials that have reached it continue."""

from __future__ import annotations

from typing import Any

from trainlib.tune.schedulers._scheduler import Mode, TrialScheduler, Verdict

__all__ = ["ASHAScheduler", "AsyncHyperBandScheduler", "HyperBandScheduler"]


class AsyncHyperBandScheduler(TrialScheduler):
    """Stops trials that are not among the best ``1/reduction_factor`` at a rung. No trial waits for another.

    Rungs are at ``grace_period`` times powers of ``reduction_factor``. With several brackets, trials are assigned
    to them in turn, and each bracket starts one rung later than the bracket before.

    Example:
        >>> from trainlib.tune.schedulers import ASHAScheduler
        >>> asha = ASHAScheduler(metric="accuracy", mode="max", max_t=8, grace_period=1, reduction_factor=2)
        >>> [asha.on_result(trial, {"accuracy": a, "training_iteration": 1}).value for trial, a in enumerate([0.9, 0.5])]
        ['continue', 'stop']
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: Mode | None = None,
        max_t: float = 100,
        grace_period: float = 1,
        reduction_factor: float = 4,
        brackets: int = 1,
        stop_last_trials: bool = True,
    ) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode)
        if not 0 < grace_period <= max_t:
            raise ValueError(
                f"grace_period is {grace_period}, max_t {max_t}: they must satisfy 0 < grace_period <= max_t"
            )
        if not reduction_factor > 1:
            raise ValueError(f"reduction_factor is {reduction_factor}: it must be greater than 1")
        if brackets < 1:
            raise ValueError(f"brackets is {brackets}: it must be 1 or more")
        self.max_t = max_t
        self.reduction_factor = reduction_factor
        self.stop_last_trials = stop_last_trials
        self._rungs = [rungs(grace_period, max_t, reduction_factor, skip=skip) for skip in range(brackets)]
        self._scores: dict[tuple[int, float], dict[int, float]] = {}

    def on_result(self, trial: int, result: dict[str, Any], *, others_wait: bool = False) -> Verdict:
        time = self.time(result)
        bracket = trial % len(self._rungs)
        reached = [rung for rung in self._rungs[bracket] if rung <= time]
        if reached:
            scores = self._scores.setdefault((bracket, reached[-1]), {})
            if trial not in scores:
                scores[trial] = self.score(result)
                if not survives(trial, scores, self.reduction_factor):
                    return Verdict.STOP
        return Verdict.CONTINUE

    def is_complete(self, result: dict[str, Any]) -> bool:
        return self.stop_last_trials and result.get(self.time_attr, 0) >= self.max_t


ASHAScheduler = AsyncHyperBandScheduler


class HyperBandScheduler(AsyncHyperBandScheduler):
    """Successive halving in several brackets: some stop trials early, some late.

    Like :class:`ASHAScheduler`, it decides as results come in, so that trials are never paused and need no checkpoints.

    Example:
        >>> from trainlib.tune.schedulers import HyperBandScheduler
        >>> HyperBandScheduler(metric="loss", mode="min", max_t=9, reduction_factor=3).max_t
        9
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: Mode | None = None,
        max_t: float = 81,
        reduction_factor: float = 3,
        stop_last_trials: bool = True,
    ) -> None:
        if not reduction_factor > 1:
            raise ValueError(f"reduction_factor is {reduction_factor}: it must be greater than 1")
        super().__init__(
            time_attr,
            metric,
            mode,
            max_t,
            grace_period=1,
            reduction_factor=reduction_factor,
            brackets=len(rungs(1, max_t, reduction_factor)) or 1,
            stop_last_trials=stop_last_trials,
        )


def rungs(grace_period: float, max_t: float, reduction_factor: float, *, skip: int = 0) -> list[float]:
    """The times at which trials are compared, lowest first. ``max_t`` is not one of them: trials end there anyway.

    Example:
        >>> rungs(1, 64, 4), rungs(1, 64, 4, skip=2)
        ([1.0, 4.0, 16.0], [16.0])
    """
    found = []
    rung = grace_period * reduction_factor**skip
    while rung < max_t:
        found.append(float(rung))
        rung *= reduction_factor
    return found


def survives(trial: int, scores: dict[int, float], reduction_factor: float) -> bool:
    """Whether a trial is among the best ``1/reduction_factor`` of those that have reached a rung, itself included.

    The best one always survives, and ties with the last survivor do too.

    Example:
        >>> survives(2, {0: 0.1, 1: 0.2, 2: 0.3}, 3), survives(1, {0: 0.1, 1: 0.2, 2: 0.3}, 3)
        (True, False)
    """
    ranked = sorted((score for score in scores.values() if score == score), reverse=True)  # without NaN
    places = max(1, int(len(scores) / reduction_factor))
    return bool(ranked) and scores[trial] >= ranked[min(places, len(ranked)) - 1]
