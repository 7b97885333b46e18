"""The user's callbacks, called as a training goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainlib.callbacks import Callback, Trial
from trainlib.callbacks._guard import CallbackGuard
from trainlib.checkpoint import Checkpoint
from trainlib.config import Stop

__all__ = ["Notifier"]


class Notifier:
    """Calls each callback with the training that it is about, in the order in which they were given."""

    def __init__(self, callbacks: Sequence[Callback], trial: Trial, say: Callable[[str], None]) -> None:
        """
        Args:
            callbacks: The user's.
            trial: The training.
            say: Shows which callback has raised something. That never ends the training.
        """
        self.trial = trial
        self._callbacks = list(callbacks)
        self._guard = CallbackGuard(say)
        self._has_started = False

    @property
    def hears_all_ranks(self) -> bool:
        """Whether a callback wants what all ranks report, and not only rank 0's."""
        return any(callback.hears_all_ranks for callback in self._callbacks)

    def set_up(self, stop: Stop) -> None:
        for callback in self._callbacks:
            self._guard.call(callback, "setup", stop=stop, num_samples=1, total_num_samples=1)

    def attempt_starts(self, number: int, iteration: int, checkpoint: Checkpoint | None) -> None:
        """Another attempt begins, from this checkpoint. A process that continues a training has callbacks that know nothing
        of it, so they hear of its start first."""
        if checkpoint is not None:
            self.trial.checkpoint = checkpoint
        if not self._has_started:
            self._has_started = True
            self._notify("on_trial_start", iteration)
        if number > 1:
            self._notify("on_trial_restore", iteration)

    def reported(self, iteration: int, result: dict[str, Any]) -> None:
        self.trial.last_result = result
        self._notify("on_trial_result", iteration, result=result)

    def reported_by_all(self, iteration: int, results: list[dict[str, Any]]) -> None:
        self._notify("on_rank_results", iteration, results=results)

    def saved(self, iteration: int, checkpoint: Checkpoint) -> None:
        self.trial.checkpoint = checkpoint
        self._notify("on_checkpoint", iteration, checkpoint=checkpoint)

    def ended(self, iteration: int, error: BaseException | None) -> None:
        self.trial.error = error
        self._notify("on_trial_error" if error is not None else "on_trial_complete", iteration)
        for callback in self._callbacks:
            self._guard.call(callback, "on_experiment_end", [self.trial])

    def _notify(self, event: str, iteration: int, **more: Any) -> None:
        for callback in self._callbacks:
            self._guard.call(callback, event, iteration=iteration, trials=[self.trial], trial=self.trial, **more)
