"""The user's callbacks, called as a training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainlib.callbacks import Callback, Trial
from trainlib.checkpoint import Checkpoint
from trainlib.config import Stop

__all__ = ["Notifier"]


class Notifier:
    """Calls each callback with the training that it is about, in the order in which they were given."""

    def __init__(self, callbacks: Sequence[Callback], trial: Trial) -> None:
        self.trial = trial
        self._callbacks = list(callbacks)

    def set_up(self, stop: Stop) -> None:
        for callback in self._callbacks:
            callback.setup(stop=stop, num_samples=1, total_num_samples=1)

    def attempt_starts(self, number: int, iteration: int) -> None:
        self._notify("on_trial_start" if number == 1 else "on_trial_restore", iteration)

    def reported(self, iteration: int, result: dict[str, Any]) -> None:
        self.trial.last_result = result
        self._notify("on_trial_result", iteration, result=result)

    def saved(self, iteration: int, checkpoint: Checkpoint) -> None:
        self.trial.checkpoint = checkpoint
        self._notify("on_checkpoint", iteration, checkpoint=checkpoint)

    def ended(self, iteration: int, *, failed: bool) -> None:
        self._notify("on_trial_error" if failed else "on_trial_complete", iteration)
        for callback in self._callbacks:
            callback.on_experiment_end([self.trial])

    def _notify(self, event: str, iteration: int, **more: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, event)(iteration=iteration, trials=[self.trial], trial=self.trial, **more)
