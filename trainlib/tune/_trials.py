"""The trials of a sweep: by number, by state, and which of them is best."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from trainlib.tune._life import TrialState
from trainlib.tune._trial import SweepTrial

__all__ = ["Trials"]


class Trials:
    """All trials that have been chosen. Thread-safe.

    Whoever looks for those that run or wait is not held up by the thousands that have ended.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, SweepTrial] = {}
        self._not_ended: list[SweepTrial] = []
        self._free = 0
        self._lock = threading.Lock()

    def add(self, trial: SweepTrial) -> None:
        """Add a trial that has just been chosen, or that an earlier process began."""
        with self._lock:
            self._by_number[trial.number] = trial
            self._not_ended.append(trial)

    def __getitem__(self, number: int) -> SweepTrial:
        return self._by_number[number]

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[SweepTrial]:
        """In the order in which they were chosen."""
        return iter(list(self._by_number.values()))

    @property
    def running(self) -> list[SweepTrial]:
        return [trial for trial in self._remaining() if trial.state is TrialState.RUNNING]

    @property
    def waiting(self) -> list[SweepTrial]:
        return [trial for trial in self._remaining() if trial.state.waits]

    @property
    def ended(self) -> int:
        """How many have ended."""
        return len(self) - len(self._remaining())

    def free_number(self) -> int:
        """The lowest number that no trial has. A process that was killed may have left a gap."""
        self._free = next(number for number in itertools.count(self._free) if number not in self._by_number)
        return self._free

    def best(self, mode: str | None) -> SweepTrial | None:
        """The trial that is best by now; None as long as none is."""
        scored = [(score, trial) for trial in self if trial.may_be_best and (score := trial.score) is not None]
        if not scored:
            return None
        return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1]

    def _remaining(self) -> list[SweepTrial]:
        with self._lock:
            self._not_ended = [trial for trial in self._not_ended if not trial.state.is_final]
            return self._not_ended
