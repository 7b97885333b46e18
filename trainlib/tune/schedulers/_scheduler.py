"""The scheduler interface: it sees each result, and decides whether the trial continues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trainlib._training.judges import Verdict

if TYPE_CHECKING:
    from trainlib.config import CheckpointConfig

__all__ = ["FIFOScheduler", "TrialScheduler", "Verdict"]

Mode = Literal["max", "min"]


Path = tuple[str | int, ...]


class TrialScheduler:
    """Lets every trial run to its end. Subclasses stop some early.

    Its decisions depend only on the results that it has seen. It knows nothing about Ray or MLflow.
    """

    needs_checkpoints: ClassVar[bool] = False
    """Whether trials have to save checkpoints, because paused or copied trials resume from them."""
    decides: ClassVar[bool] = True
    """Whether it may return anything but CONTINUE. If so, trials wait at each report for its verdict."""

    def __init__(self, *, time_attr: str, metric: str | None, mode: Mode | None) -> None:
        if mode not in (None, "max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        self.time_attr = time_attr
        self.metric = metric
        self.mode = mode

    def use(self, metric: str | None, mode: Mode | None) -> None:
        """Use the metric and mode of TuneConfig, unless it has its own.

        Raises:
            ValueError: both are missing, or they differ.
        """
        for name, own, given in (("metric", self.metric, metric), ("mode", self.mode, mode)):
            if own is not None and given is not None and own != given:
                raise ValueError(
                    f"{type(self).__name__} has {name}={own!r}, but TuneConfig has {name}={given!r}: set it once, in TuneConfig"
                )
        self.metric, self.mode = self.metric or metric, self.mode or mode
        if self.decides and (self.metric is None or self.mode is None):
            raise ValueError(
                f"{type(self).__name__} compares trials, but metric or mode is missing: set metric and mode in TuneConfig, e.g. "
                "TuneConfig(metric='loss', mode='min', ...)"
            )

    def score(self, result: dict[str, Any]) -> float:
        """A result's score. Higher is better, whatever the mode."""
        value = float(result[self.metric or ""])
        return value if self.mode == "max" else -value

    def time(self, result: dict[str, Any]) -> float:
        """The time of a result, by ``time_attr``.

        Raises:
            ValueError: the result does not have it.
        """
        if self.time_attr not in result:
            raise ValueError(
                f"{type(self).__name__} has time_attr={self.time_attr!r}, but the training function does not report it. Report "
                "it, or use 'training_iteration' or 'time_total_s', which are always there"
            )
        return float(result[self.time_attr])

    def on_result(self, trial: int, result: dict[str, Any], *, others_wait: bool = False) -> Verdict:
        """A trial has reported. ``others_wait``: whether other trials are waiting to run."""
        return Verdict.CONTINUE

    def is_complete(self, result: dict[str, Any]) -> bool:
        """Whether a trial has come as far as any trial may. It then counts as one that ran to its end."""
        return False

    def on_end(self, trial: int) -> None:
        """A trial has ended, in whatever way."""

    def first_of(self, waiting: Sequence[int]) -> int:
        """Which of the waiting trials runs next."""
        return min(waiting)

    # -- for schedulers that let trials copy each other -------------------------------------------------

    def require_space(self, param_space: Mapping[str, Any]) -> None:
        """Refuse a search space that the scheduler cannot work with.

        Raises:
            ValueError: what is missing in it.
        """

    def require_checkpoints(self, config: CheckpointConfig) -> None:
        """Refuse trials that keep no checkpoints, if the scheduler needs them.

        Raises:
            ValueError: it does, and a checkpoint that is in memory alone cannot be copied to another trial.
        """
        if self.needs_checkpoints and config.num_to_keep == 0:
            raise ValueError(
                f"{type(self).__name__} resumes trials from checkpoints, but CheckpointConfig(num_to_keep=0) keeps none. "
                "Raise num_to_keep, or leave it out"
            )

    def better_than(self, trial: int) -> int | None:
        """Whose weights a paused trial takes over before it goes on; None if it goes on with its own."""
        return None

    def explore(self, current: Callable[[Path], Any]) -> dict[Path, Any]:
        """Other values for some of the params that were taken over; ``current`` gives what they are now."""
        return {}

    def explore_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """What else changes in the config of a trial that has taken over another one's."""
        return {}


class FIFOScheduler(TrialScheduler):
    """Runs every trial to its end, in the order in which they were chosen.

    Example:
        >>> from trainlib.tune.schedulers import FIFOScheduler
        >>> FIFOScheduler().on_result(0, {"loss": 1.0}).value
        'continue'
    """

    decides = False

    def __init__(self) -> None:
        super().__init__(time_attr="training_iteration", metric=None, mode=None)
