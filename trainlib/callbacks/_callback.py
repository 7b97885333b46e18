"""The callback interface. Callbacks run in the process that called ``fit()``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainlib.checkpoint import Checkpoint

__all__ = ["Callback", "LoggerCallback", "Trial"]


@dataclass
class Trial:
    """The training that a callback is called for."""

    trial_id: str
    trainable_name: str
    config: dict[str, Any]
    local_path: str
    run_id: str
    last_result: dict[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    """The newest one that is saved. When another attempt starts, the one that it starts from."""
    error: BaseException | None = None
    """What the training ended with, if it did not succeed."""

    @property
    def logdir(self) -> str:
        """The training's local log directory."""
        return self.local_path

    def init_local_path(self) -> None:
        """Create the log directory, if it does not exist."""
        Path(self.local_path).mkdir(parents=True, exist_ok=True)

    def __str__(self) -> str:
        return f"{self.trainable_name}_{self.trial_id}"

    def __hash__(self) -> int:
        return hash(self.trial_id)


class Callback:
    """Its methods are called during a training. By default they do nothing.

    Example:
        >>> class Print(Callback):
        ...     def on_trial_result(self, iteration, trials, trial, result, **info):
        ...         print(result)
    """

    log_files: tuple[str, ...] = ()
    """The files of a training's log directory that it writes. The training itself then leaves them to it."""

    def setup(
        self, stop: Any = None, num_samples: int | None = None, total_num_samples: int | None = None, **info: Any
    ) -> None:
        """Called first, before the training starts."""

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """The training starts, or this process continues it. Called once, not for each attempt."""

    def on_trial_restore(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Another attempt starts, from ``trial.checkpoint``, or from the beginning if that is None."""

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Rank 0 has reported."""

    def on_rank_results(
        self, iteration: int, trials: list[Trial], trial: Trial, results: list[dict[str, Any]], **info: Any
    ) -> None:
        """All ranks have reported. ``results`` has what each of them did, by rank.

        Other ranks than 0 send their metrics only if a callback has this method.
        """

    @property
    def hears_all_ranks(self) -> bool:
        """Whether it has :meth:`on_rank_results`."""
        return type(self).on_rank_results is not Callback.on_rank_results

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        """A checkpoint is saved, and can be read. It is in ``trial.checkpoint``, too."""

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """The training has finished."""

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """The training has failed for good."""

    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        """Called last, however the training ended."""


class LoggerCallback(Callback):
    """A simpler interface for callbacks that write results somewhere.

    Example:
        >>> class Collect(LoggerCallback):
        ...     def __init__(self):
        ...         self.results = []
        ...     def log_trial_result(self, iteration, trial, result):
        ...         self.results.append(result)
    """

    def log_trial_start(self, trial: Trial) -> None:
        """The training starts."""

    def log_trial_restore(self, trial: Trial) -> None:
        """Another attempt starts."""

    def log_trial_save(self, trial: Trial) -> None:
        """A checkpoint is saved. It is in ``trial.checkpoint``."""

    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, Any]) -> None:
        """Rank 0 has reported."""

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """The training has ended."""

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.log_trial_start(trial)

    def on_trial_restore(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.log_trial_restore(trial)

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        self.log_trial_result(iteration, trial, result)

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        self.log_trial_save(trial)

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.log_trial_end(trial, failed=False)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        self.log_trial_end(trial, failed=True)
