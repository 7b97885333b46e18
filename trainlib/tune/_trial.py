"""One trial of a sweep: its point, its trainer, and how far it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trainlib._execution.waiting import Interruption
from trainlib._registry.attempts import Outcome
from trainlib._secrets import MASK
from trainlib._training.training import Progress
from trainlib.result import Result, Stopped, StopReason
from trainlib.tune._domains import label
from trainlib.tune._life import TrialState
from trainlib.tune._point import Point

if TYPE_CHECKING:
    from trainlib._registry.recorded_sweep import RecordedTrial
    from trainlib._training.training import Training
    from trainlib.trainer import DataParallelTrainer

__all__ = ["SweepTrial", "default_name", "described"]

_LONGEST_NAME = 80


class SweepTrial:
    """What a sweep knows of a trial.

    Its sweep changes it, under a lock; its own thread sets ``training`` and what it goes on with after a pause. Anybody
    may read it.
    """

    def __init__(
        self,
        point: Point,
        config: dict[str, Any],
        shown: dict[str, Any],
        trainer: DataParallelTrainer,
        *,
        metric: str | None,
    ) -> None:
        self.point = point
        self.config = config
        """As a user wrote it."""
        self.shown = shown
        """What varies between trials, by name."""
        self.trainer = trainer
        self.metric = metric
        """What the sweep optimises."""
        self.recorded: RecordedTrial | None = None
        """Its run, if an earlier process began it."""
        self.name = default_name(point.number, shown)
        self.state = TrialState.PENDING
        self.training: Training | None = None
        """While its run is open."""
        self.cancel = Interruption()
        """Ends it at once, whatever it does."""
        self.result: Result | None = None
        self.before: Result | None = None
        """What an earlier process of the sweep had of it."""
        self.broken: Exception | None = None
        """What is wrong with its point: there is nothing to train with."""
        self.error: BaseException | None = None
        self.explores = False
        """Whether it was paused, and may go on with what a better one has."""
        self.segments = 0
        """How often it was put to work."""
        self._progress = Progress()

    @property
    def number(self) -> int:
        return self.point.number

    @property
    def progress(self) -> Progress:
        """How far it is: as its training says, or what was known before that."""
        training = self.training
        live = training.progress if training is not None else None
        return live if live is not None and live.latest is not None else self._progress

    def recall_progress(self, history: Iterable[dict[str, Any]]) -> None:
        """Its rows as the registry has them, of an earlier process."""
        values: dict[str, Any] = {}
        row = None
        for row in history:
            values.update(row)
        if row is not None:
            self._progress = Progress(int(row["training_iteration"]), row, values)

    def release(self) -> None:
        """Let go of its training, whose run has been closed, and keep how far it came."""
        self._progress, self.training = self.progress, None

    @property
    def iteration(self) -> int:
        return self.progress.iteration

    @property
    def latest(self) -> dict[str, Any]:
        """The latest result."""
        return self.progress.latest or {}

    @property
    def score(self) -> float | None:
        """What it reported last of the sweep's metric."""
        value = (self.progress.values or {}).get(self.metric) if self.metric is not None else None
        return float(value) if value is not None else None

    @property
    def stopped(self) -> Stopped | None:
        """Which limit of RunConfig has ended it, once it has ended."""
        return self.result.stopped if self.result is not None else None

    @property
    def final_score(self) -> float | None:
        """What a sampler learns from it. None if it failed, or ended in NaN: then it has no score worth learning from."""
        is_nan = self.stopped is not None and self.stopped.reason is StopReason.NAN
        return None if is_nan or self.error is not None else self.score

    @property
    def may_be_best(self) -> bool:
        """Whether it has a score to compare, and has neither failed nor diverged."""
        diverged = self.stopped is not None and self.stopped.reason.is_divergence
        return self.error is None and not diverged and self.score is not None and math.isfinite(self.score)

    @property
    def outcome(self) -> Outcome:
        """How its latest attempt ended, if it did not fail."""
        return self.training.outcome if self.training is not None else Outcome.FINISHED

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
        """What people see as its name, e.g. ``trial 7 · lr=0.01``."""
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
    """What a trial's run in MLflow is called: it says what differs from the other trials. Secrets do not.

    Example:
        >>> default_name(7, {"model.lr": 0.01, "layers": 2})
        'trial 7 · lr=0.01 layers=2'
    """
    told = {name: label(value) for name, value in shown.items() if value != MASK}
    params = " ".join(f"{name.rpartition('.')[2]}={_on_one_line(value)}" for name, value in told.items())
    return f"trial {number} · {params}"[:_LONGEST_NAME].rstrip(" ·_,")


def _on_one_line(text: str) -> str:
    return "".join(char if char.isalnum() or char in "_-=.,+" else "_" for char in text)
