"""What runs next: a trial that waits, or a new one, as far as there is room."""

from __future__ import annotations

from collections.abc import Mapping

from trainlib.tune._capacity import has_room
from trainlib.tune._plan import SweepPlan
from trainlib.tune._point import Point
from trainlib.tune._search import Search
from trainlib.tune._trial import SweepTrial
from trainlib.tune._trials import Trials
from trainlib.tune.schedulers import TrialScheduler

__all__ = ["Agenda"]


class Agenda:
    """Chooses the trial to start next. It starts none, and changes no trial's state."""

    def __init__(self, plan: SweepPlan, trials: Trials, search: Search, scheduler: TrialScheduler) -> None:
        self._plan = plan
        self._trials = trials
        self._search = search
        self._scheduler = scheduler

    @property
    def is_empty(self) -> bool:
        """Whether every trial that there is to be has been started, and none waits to go on."""
        return self._new_number is None and not self._trials.waiting

    def next_trial(self, total: Mapping[str, float], spare_cpus: float) -> SweepTrial | None:
        """The trial to start now; None if there is no room, or none is left.

        Args:
            total: What the cluster has, by resource.
            spare_cpus: How many of its CPUs trials must not take.
        """
        limit = self._plan.config.max_concurrent_trials
        running = [trial.trainer.settings.gang for trial in self._trials.running]
        if self.is_empty or (limit is not None and len(running) >= limit):
            return None
        waiting = {trial.number: trial for trial in self._trials.waiting}
        new = self._new_number
        chosen = self._scheduler.first_of([*waiting, *([new] if new is not None else [])])
        gang = waiting[chosen].trainer.settings.gang if chosen in waiting else self._plan.gang
        if gang is not None and not has_room(total, spare_cpus, running, gang):
            return None
        trial = waiting.get(chosen) or self._create(chosen)
        if not has_room(total, spare_cpus, running, trial.trainer.settings.gang):
            return None  # a new one of unknown size: it waits from now on
        return trial

    @property
    def _new_number(self) -> int | None:
        """The number of the next new trial, if there is to be one."""
        number = self._trials.free_number()
        return number if self._plan.total is None or number < self._plan.total else None

    def _create(self, number: int) -> SweepTrial:
        try:
            trial = self._plan.trial_of(*self._search.ask(number))
        except Exception as error:  # a function of sample_from is the user's
            trial = self._plan.broken(Point(number, {}), error)
        self._trials.add(trial)
        return trial
