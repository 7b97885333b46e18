"""RaySGD's callback interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainlib.callbacks import Callback, Trial
from trainlib.errors import InvalidArgumentError

__all__ = ["SGDCallback", "chosen_ranks"]


class SGDCallback(Callback):
    """Its methods are called during ``Trainer.run``, in the process that called it. By default they do nothing.

    Example:
        >>> from trainlib.sgd import SGDCallback
        >>> class PrintingCallback(SGDCallback):
        ...     def handle_result(self, results, **info):
        ...         print(results)
        >>> PrintingCallback().handle_result([{"loss": 0.5}, {"loss": 0.25}])
        [{'loss': 0.5}, {'loss': 0.25}]
    """

    def start_training(self, logdir: str, **info: Any) -> None:
        """A run starts. ``logdir`` is its own folder, e.g. ``.../sgd_2026-01-31_09-30-00/run_001``."""

    def handle_result(self, results: list[dict[str, Any]], **info: Any) -> None:
        """All ranks have reported. ``results`` has what each of them did, by rank."""

    def finish_training(self, error: bool = False, **info: Any) -> None:
        """The run has ended; ``error`` says whether it failed."""

    # -- how a training calls it ------------------------------------------------------------------------

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.start_training(trial.logdir, config=trial.config)

    def on_rank_results(
        self, iteration: int, trials: list[Trial], trial: Trial, results: list[dict[str, Any]], **info: Any
    ) -> None:
        self.handle_result(results, iteration=iteration)

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.finish_training(error=False)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.finish_training(error=True)


def chosen_ranks(results: Sequence[dict[str, Any]], ranks: Sequence[int] | None) -> list[dict[str, Any]]:
    """The results of some ranks; None is all of them.

    Example:
        >>> chosen_ranks([{"loss": 0.5}, {"loss": 0.25}], [1])
        [{'loss': 0.25}]
    """
    if ranks is None:
        return list(results)
    if missing := [rank for rank in ranks if not 0 <= rank < len(results)]:
        raise InvalidArgumentError(f"workers_to_log names worker {missing[0]}, but there are only {len(results)}")
    return [results[rank] for rank in ranks]
