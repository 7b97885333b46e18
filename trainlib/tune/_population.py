"""How a trial of a population takes over what a better one has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainlib._registry.checkpoints import CheckpointStore
from trainlib.tune._space import Point, value_at
from trainlib.tune._trial import SweepTrial
from trainlib.tune._trials import Trials
from trainlib.tune.schedulers._pbt import PopulationBasedTraining

if TYPE_CHECKING:
    from trainlib.tune._plan import SweepPlan

__all__ = ["Exploit", "exploit", "require_mutations"]


@dataclass(frozen=True)
class Exploit:
    """What a trial goes on with."""

    point: Point
    tree: dict[str, Any]
    store: CheckpointStore


def exploit(scheduler: PopulationBasedTraining, trial: SweepTrial, trials: Trials, plan: SweepPlan) -> Exploit | None:
    """The weights of a better trial, with its params changed; None if the trial does well, or the other has none."""
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
    if scheduler.explore_fn is not None:
        config = scheduler.explore_fn(dict(value_at(plan.space.config_of(point), prefix)))
        point = point.with_changes({(*prefix, key): value for key, value in config.items()})
    return Exploit(point, plan.space.config_of(point), store)


def require_mutations(scheduler: PopulationBasedTraining, param_space: dict[str, Any]) -> None:
    """Refuse to change what is not there.

    Raises:
        ValueError: names it.
    """
    for path in scheduler.mutations:
        try:
            value_at(param_space, path)
        except (KeyError, TypeError):
            name = "".join(f"[{part!r}]" for part in path)
            raise ValueError(
                f"hyperparam_mutations{name} is not in param_space: put where it starts from there"
            ) from None
