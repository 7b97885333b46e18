"""What a sweep is to do, and the trials that follow from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from trainlib._digest import digest
from trainlib._execution.causes import Cause
from trainlib._registry import tags
from trainlib._registry.fingerprint import Fingerprint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import TrainingFailedError
from trainlib.tune._config import TuneConfig
from trainlib.tune._point import Point
from trainlib.tune._space import Space, leaves
from trainlib.tune._trainable import Trainable
from trainlib.tune._trial import SweepTrial
from trainlib.tune.schedulers import TrialScheduler

__all__ = ["SweepPlan"]


@dataclass(frozen=True)
class SweepPlan:
    """What is tuned, in which space, and how."""

    trainable: Trainable
    space: Space
    config: TuneConfig
    run_config: RunConfig
    run_fields: dict[str, Any]
    """What the sweep itself says about runs; what it does not, the trainer of a trial says."""
    settings: bytes
    """What another process needs to go on with it."""
    trained: tuple[Fingerprint, ...] = ()
    """The trainers of the sweep, with each dataset that it may choose. Empty for a sweep that is restored."""
    restored_run: str | None = None
    """The parent run to continue."""
    resume_errored: bool = False
    """Whether trials that failed are tried again, from their newest checkpoints."""

    def trial_of(self, point: Point, tree: dict[str, Any]) -> SweepTrial:
        """The trial of a point, whose settings are ``tree``."""
        config, shown = self.trainable.config(tree), self.space.shown(tree)
        try:
            trainer = self.trainable.trainer(tree, self.run_fields)
            self._scheduler.require_checkpoints(trainer.run_config.checkpoint_config)
            trial = SweepTrial(point, config, shown, trainer, metric=self.metric)
            if creator := self.config.trial_name_creator:
                trial.name = str(creator(trial))
            return trial
        except Exception as error:  # settings that no trainer takes, or a function of the user's
            return self.broken(point, error, config, shown)

    def trial_at(self, point: Point) -> SweepTrial:
        """The trial of a point that an earlier process chose."""
        try:
            return self.trial_of(point, self.space.config_of(point))
        except Exception as error:  # it was broken then, too
            return self.broken(point, error)

    def broken(
        self, point: Point, error: Exception, config: dict[str, Any] | None = None, shown: dict[str, Any] | None = None
    ) -> SweepTrial:
        """A trial that fails as soon as it has its turn: one bad point is no reason to end a sweep."""
        trainer = self.trainable.trainer({}, self.run_fields)
        trial = SweepTrial(point, config or {}, shown or {}, trainer, metric=self.metric)
        text = " ".join(str(error).split())
        trial.broken = TrainingFailedError(f"its settings make no training: {text}", cause=Cause.USER)
        return trial

    def require_same_space(self, run: Any) -> None:
        """Refuse to go on with a sweep that was begun with another space; it stays as it is.

        Raises:
            ValueError: it was.
        """
        before = run.data.tags.get(tags.SWEEP_SPACE)
        if before is not None and before != self.space_digest:
            raise ValueError(
                f"the sweep {run.info.run_name!r} was begun with another param_space, and is not finished: give it the same "
                "one to continue it, or this one another RunConfig.name"
            )

    @cached_property
    def _scheduler(self) -> TrialScheduler:
        """What the settings say about it; a sweep has a copy of its own."""
        return self.config.make_scheduler()

    @cached_property
    def metric(self) -> str | None:
        """What is optimised: as TuneConfig says, or else the scheduler."""
        return self.config.metric or self._scheduler.metric

    @cached_property
    def mode(self) -> Literal["max", "min"] | None:
        """Whether a high or a low value of it is better."""
        return self.config.mode or self._scheduler.mode

    @property
    def space_digest(self) -> str:
        """The same for the same space, in any process."""
        return hashlib.sha256(self.space.fingerprint.encode()).hexdigest()

    @cached_property
    def fingerprint(self) -> Fingerprint | None:
        """What decides whether a sweep may continue an interrupted one; None for one that was asked for."""
        if self.restored_run is not None:
            return None
        settings = {key: value for key, value in self.space.tree.items() if key != "datasets"}
        return Fingerprint(
            function=digest([each.function for each in self.trained]),
            config=digest(([each.config for each in self.trained], self.space_digest, settings)),
            data=digest([each.data for each in self.trained]),
        )

    @cached_property
    def gang(self) -> ScalingConfig | None:
        """What every trial asks for; None if that differs."""
        settings = self.space.tree.get("scaling_config", {})
        if next(leaves(settings), None) is not None or len(self.trainable.trainers) > 1:
            return None
        return self.trainable.trainer({"scaling_config": settings}, self.run_fields).settings.gang

    @property
    def reads_data(self) -> bool:
        """Whether trials get datasets."""
        return "datasets" in self.space.tree or any(trainer.datasets for trainer in self.trainable.trainers)

    @property
    def total(self) -> int | None:
        """How many trials there will be; None if only time ends it."""
        samples = self.config.num_samples
        return None if samples == -1 else samples * self.space.grid_size
