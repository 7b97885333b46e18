"""How a trial of a population takes over what a better one has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainlib._registry.checkpoints import CheckpointStore
from trainlib.tune._point import Point
from trainlib.tune._space import value_at
from trainlib.tune._trial import SweepTrial
from trainlib.tune._trials import Trials
from trainlib.tune.schedulers import TrialScheduler

if TYPE_CHECKING:
    from trainlib.tune._plan import SweepPlan

__all__ = ["Exploit", "exploit"]


@dataclass(frozen=True)
class Exploit:
    """What a trial goes on with."""

    point: Point
    tree: dict[str, Any]
    store: CheckpointStore


def exploit(scheduler: TrialScheduler, trial: SweepTrial, trials: Trials, plan: SweepPlan) -> Exploit | None:
    """What a trial that was paused goes on with: the weights of a better one, with its params changed.

    None if the scheduler has it go on as it is, or the better one has no checkpoint.
    """
    number = scheduler.better_than(trial.number)
    if number is None or number == trial.number:
        return None
    source = trials[number]
    store = source.training.run.checkpoints if source.training is not None else None
    if store is None or store.newest() is None:
        return None
    prefix = ("train_loop_config",) if plan.trainable.is_function else ()
    tree = plan.space.config_of(source.point)
    changed = {
        (*prefix, *path): v for path, v in scheduler.explore(lambda path: value_at(tree, (*prefix, *path))).items()
    }
    point = replace(source.point, number=trial.number).with_changes(changed)
    config = scheduler.explore_config(dict(value_at(plan.space.config_of(point), prefix)))
    point = point.with_changes({(*prefix, key): value for key, value in config.items()})
    return Exploit(point, plan.space.config_of(point), store)
