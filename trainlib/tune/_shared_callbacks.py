"""The user's callbacks in a sweep: one object sees all trials, one event at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from trainlib.callbacks import Callback, Trial
from trainlib.callbacks._guard import CallbackGuard

__all__ = ["SharedCallbacks"]


class SharedCallbacks(Callback):
    """Hands on what trials tell, each in its own thread, to callbacks that know nothing of threads.

    A trial also tells that the experiment begins and ends; only the sweep knows when that is so.
    """

    def __init__(self, callbacks: list[Callback], say: Callable[[str], None]) -> None:
        """``say`` shows which callback has raised something. That never ends the sweep."""
        self._callbacks = callbacks
        self.log_files = tuple(name for callback in callbacks for name in callback.log_files)
        self._guard = CallbackGuard(say)
        self._trials: dict[str, Trial] = {}
        self._lock = threading.Lock()

    def begin(self, **about: Any) -> None:
        for callback in self._callbacks:
            self._guard.call(callback, "setup", **about)

    def end(self) -> None:
        for callback in self._callbacks:
            self._guard.call(callback, "on_experiment_end", list(self._trials.values()))

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_start", iteration, trial, info)

    def on_trial_restore(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_restore", iteration, trial, info)

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        self._tell("on_trial_result", iteration, trial, {"result": result, **info})

    def on_rank_results(
        self, iteration: int, trials: list[Trial], trial: Trial, results: list[dict[str, Any]], **info: Any
    ) -> None:
        self._tell("on_rank_results", iteration, trial, {"results": results, **info})

    @property
    def hears_all_ranks(self) -> bool:
        return any(callback.hears_all_ranks for callback in self._callbacks)

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        self._tell("on_checkpoint", iteration, trial, {"checkpoint": checkpoint, **info})

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_complete", iteration, trial, info)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self._tell("on_trial_error", iteration, trial, info)

    def _tell(self, event: str, iteration: int, trial: Trial, info: dict[str, Any]) -> None:
        with self._lock:
            self._trials[trial.trial_id] = trial
            trials = list(self._trials.values())
            for callback in self._callbacks:
                self._guard.call(callback, event, iteration=iteration, trials=trials, trial=trial, **info)
