"""The limits of a training: how long it may take, and when it has diverged."""

from __future__ import annotations

import time
from typing import Any

from trainlib._autofilled import as_reported
from trainlib._execution.divergence import DivergenceWatch
from trainlib._execution.reported import numbers_of
from trainlib._training.judges import Judge, Verdict
from trainlib.config import RunConfig
from trainlib.result import Stopped, StopReason

__all__ = ["Limits"]

_NOTE_S = 5.0


class Limits:
    """Judges a training by the limits of its ``RunConfig``, and counts the time in which its workers run.

    The time between attempts does not count, nor that in which it waits for room: a cluster that is busy, or a server that is
    away, takes nothing from a training. What a failed attempt took counts: the limit is on what a training may use.
    """

    def __init__(self, config: RunConfig, *, spent_s: float) -> None:
        """For a training that has used ``spent_s`` seconds of its time before."""
        self._config = config
        self._watch = DivergenceWatch.of(config)
        self._spent_before = spent_s
        self._started: float | None = None
        self._noted_at = time.monotonic()

    # -- counting time ----------------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        """The seconds in which its workers have run, in all attempts and processes."""
        return self._spent_before + (time.monotonic() - self._started if self._started is not None else 0.0)

    def workers_started(self) -> None:
        """The time of an attempt begins."""
        self._started = self._noted_at = time.monotonic()
        self._watch = DivergenceWatch.of(self._config)

    def attempt_ended(self) -> None:
        """The time of an attempt ends. Does no harm if it has not begun."""
        self._spent_before, self._started = self.spent_s, None

    def is_to_be_noted(self) -> bool:
        """Whether the registry should hear now how much time is spent, for a process that continues the training."""
        if self._config.max_time_s is None or time.monotonic() - self._noted_at < _NOTE_S:
            return False
        self._noted_at = time.monotonic()
        return True

    # -- judging ----------------------------------------------------------------------------------------

    def judges(self) -> list[Judge]:
        """Those that say when a limit is reached. All ranks end at the same report then."""
        judges = [Judge(self._judge_report)] if self._watch.is_on else []
        if self._config.max_time_s is not None:
            judges.append(Judge(lambda result: self.time_is_over() or Verdict.CONTINUE, between_reports=True))
        return judges

    def time_is_over(self) -> Stopped | None:
        """That the time limit is reached, if it is."""
        limit = self._config.max_time_s
        if limit is None or self.spent_s < limit:
            return None
        return Stopped(StopReason.TIME_LIMIT, f"its time limit of {limit:g} s is over (RunConfig.max_time_s)")

    def _judge_report(self, result: dict[str, Any]) -> Verdict | Stopped:
        numbers = numbers_of(as_reported(result))
        return self._watch.inspect(result["training_iteration"], numbers) or Verdict.CONTINUE
