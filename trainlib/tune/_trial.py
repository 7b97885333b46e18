"""One trial of a sweep: its point, its trainer, and how far it is."""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from trainlib.result import Result
from trainlib.tune._domains import label
from trainlib.tune._space import Point

if TYPE_CHECKING:
    from trainlib._registry.recorded_sweep import RecordedTrial
    from trainlib._training.training import Training
    from trainlib.trainer import DataParallelTrainer

__all__ = ["SweepTrial", "TrialState"]

_LONGEST_NAME = 80


class TrialState(StrEnum):
    """Where a trial is in its life."""

    PENDING = "pending"
    """Chosen, and waiting for room."""
    RUNNING = "running"
    """Its workers train."""
    PAUSED = "paused"
    """Its workers are another one's for now; it goes on from its newest checkpoint."""
    TERMINATED = "terminated"
    """Its function returned, or what RunConfig.stop asks for was reached."""
    STOPPED = "stopped"
    """The scheduler ended it early. Not a failure."""
    ERROR = "error"
    """It failed, and its failure budget is spent."""
    CANCELLED = "cancelled"
    """It was running when the sweep was ended."""

    @property
    def waits(self) -> bool:
        """Whether it is still to be run."""
        return self in (TrialState.PENDING, TrialState.PAUSED)

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of it."""
        return not self.waits and self is not TrialState.RUNNING


class SweepTrial:
    """What a sweep knows of a trial. Changed under the sweep's lock only."""

    def __init__(
        self, point: Point, config: dict[str, Any], shown: dict[str, Any], trainer: DataParallelTrainer
    ) -> None:
        self.point = point
        self.config = config
        """As a user wrote it."""
        self.shown = shown
        """What varies between trials, by name."""
        self.trainer = trainer
        self.recorded: RecordedTrial | None = None
        """Its run, if an earlier process began it."""
        self.name = default_name(point.number, shown)
        self.state = TrialState.PENDING
        self.verdict = TrialState.TERMINATED
        """What it becomes when its attempt ends without an error."""
        self.training: Training | None = None
        self.cancel = threading.Event()
        """Ends it at once, whatever it does."""
        self.iteration = 0
        self.latest: dict[str, Any] = {}
        self.score: float | None = None
        """What it reported last of the sweep's metric."""
        self.was_cut = False
        """Whether the sweep ended while it ran."""
        self.result: Result | None = None
        self.before: Result | None = None
        """What an earlier process of the sweep had of it."""
        self.broken: Exception | None = None
        """What is wrong with its point: there is nothing to train with."""
        self.error: BaseException | None = None
        self.ends_by_itself = True
        """Whether neither the scheduler nor RunConfig.stop can end it at a report."""
        self.explores = False
        """Whether it was paused, and may go on with what a better one has."""
        self.segments = 0
        """How often it was put to work."""

    @property
    def number(self) -> int:
        return self.point.number

    @property
    def trial_id(self) -> str:
        """The number, as a name; newer than the trial's run, which it may name."""
        return f"{self.number:05d}"

    @property
    def trainable_name(self) -> str:
        """What is trained."""
        return type(self.trainer).__name__

    @property
    def title(self) -> str:
        """How people are told of it, e.g. ``trial 7 · lr=0.01``."""
        title = f"trial {self.number} · {described(self.shown)}" if self.shown else f"trial {self.number}"
        return f"{title} · from iteration {self.iteration}" if self.segments > 1 else title


def described(shown: dict[str, Any]) -> str:
    """Params on one line.

    Example:
        >>> described({"lr": 0.012345, "layers": 2})
        'lr=0.01235 layers=2'
    """
    return " ".join(f"{name}={label(value)}" for name, value in shown.items())


def default_name(number: int, shown: dict[str, Any]) -> str:
    """A name for a trial's run and folder.

    Example:
        >>> default_name(7, {"model.lr": 0.01, "layers": 2})
        '00007_lr=0.01,layers=2'
    """
    params = ",".join(f"{name.rpartition('.')[2]}={label(value)}" for name, value in shown.items())
    safe = "".join(char if char.isalnum() or char in "_-=.,+" else "_" for char in params)
    return f"{number:05d}_{safe}"[:_LONGEST_NAME].rstrip("_,")
