"""The user's callbacks in a sweep: one object sees all trials, one event at a time."""

from __future__ import annotations

import threading
from typing import Any

from trainlib.callbacks import Callback, Trial

__all__ = ["SharedCallbacks"]


class SharedCallbacks(Callback):
    """Hands on what trials tell, each in its own thread, to callbacks that know nothing of threads.

    A trial also tells that the experiment begins and ends; only the sweep knows when that is so.
    """

    def __init__(self, callbacks: list[Callback]) -> None:
        self._callbacks = callbacks
        self._trials: dict[str, Trial] = {}
        self._lock = threading.Lock()

    def begin(self, **about: Any) -> None:
        for callback in self._callbacks:
            callback.setup(**about)

    def end(self) -> None:
        for callback in self._callbacks:
            callback.on_experiment_end(list(self._trials.values()))

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_start", iteration, trial, info)

    def on_trial_restore(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_restore", iteration, trial, info)

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        self._tell("on_trial_result", iteration, trial, {"result": result, **info})

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        self._tell("on_checkpoint", iteration, trial, {"checkpoint": checkpoint, **info})

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_complete", iteration, trial, info)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_error", iteration, trial, info)

    def _tell(self, event: str, iteration: int, trial: Trial, info: dict[str, Any]) -> None:
        with self._lock:
            self._trials[trial.trial_id] = trial
            for callback in self._callbacks:
                getattr(callback, event)(iteration=iteration, trials=list(self._trials.values()), trial=trial, **info)
