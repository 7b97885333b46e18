"""Population based training: bad trials copy the weights of good ones from time to time, and change their params."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainlib.errors import InvalidArgumentError
from trainlib.tune._domains import Categorical, Domain
from trainlib.tune._sample import as_domain
from trainlib.tune._space import value_at
from trainlib.tune.schedulers._scheduler import Mode, Path, TrialScheduler, Verdict

__all__ = ["PopulationBasedTraining"]


class PopulationBasedTraining(TrialScheduler):
    """Every ``perturbation_interval``, a trial in the worst quarter continues from the checkpoint of one in the best.

    It also gets the params of the better trial, changed: each is multiplied by one of ``perturbation_factors``, or
    sometimes resampled. If not all trials fit on the cluster, they take turns.

    Example:
        >>> from trainlib import tune
        >>> from trainlib.tune.schedulers import PopulationBasedTraining
        >>> pbt = PopulationBasedTraining(
        ...     time_attr="training_iteration", metric="loss", mode="min", perturbation_interval=4,
        ...     hyperparam_mutations={"lr": tune.loguniform(1e-4, 1e-1), "momentum": [0.8, 0.9, 0.99]},
        ... )
        >>> pbt.needs_checkpoints
        True
    """

    needs_checkpoints = True

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: str | None = None,
        mode: Mode | None = None,
        perturbation_interval: float = 60.0,
        burn_in_period: float = 0.0,
        hyperparam_mutations: Mapping[str, Any] | None = None,
        quantile_fraction: float = 0.25,
        resample_probability: float = 0.25,
        perturbation_factors: tuple[float, float] = (1.2, 0.8),
        custom_explore_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode)
        if not perturbation_interval > 0:
            raise ValueError(f"perturbation_interval is {perturbation_interval}: it must be greater than 0")
        if not 0 <= quantile_fraction <= 0.5:
            raise ValueError(f"quantile_fraction is {quantile_fraction}: it must be between 0 and 0.5")
        if not hyperparam_mutations and custom_explore_fn is None:
            raise ValueError("there is nothing to mutate: set hyperparam_mutations or custom_explore_fn")
        self._explore_fn = custom_explore_fn
        self._mutations = dict(_mutations(hyperparam_mutations or {}))
        self._interval = perturbation_interval
        self._burn_in = burn_in_period
        self._quantile = quantile_fraction
        self._resample = resample_probability
        self._factors = perturbation_factors
        self.seed = seed
        self._rng = random.Random(seed)
        self._scores: dict[int, float] = {}
        self._times: dict[int, float] = {}
        self._perturbed_at: dict[int, float] = {}

    def on_result(self, trial: int, result: dict[str, Any], *, others_wait: bool = False) -> Verdict:
        time = self.time(result)
        self._times[trial] = time
        if time < self._burn_in or time - self._perturbed_at.get(trial, 0.0) < self._interval:
            return Verdict.CONTINUE
        self._perturbed_at[trial] = time
        self._scores[trial] = self.score(result)
        if others_wait or trial in quantiles(self._scores, self._quantile)[0]:
            return Verdict.PAUSE
        return Verdict.CONTINUE

    def on_end(self, trial: int) -> None:
        self._times.pop(trial, None)

    def first_of(self, waiting: Sequence[int]) -> int:
        """The trial that has run the least, so that all advance together."""
        return min(waiting, key=lambda trial: (self._times.get(trial, 0.0), trial))

    def better_than(self, trial: int) -> int | None:
        """The trial to copy weights from. None if this one does well enough."""
        worst, best = quantiles(self._scores, self._quantile)
        return self._rng.choice(sorted(best)) if trial in worst and best else None

    def explore(self, current: Callable[[Path], Any]) -> dict[Path, Any]:
        """New values for all mutations, near those that ``current`` returns."""
        return {
            path: mutated(current(path), options, self._rng, self._resample, self._factors)
            for path, options in self._mutations.items()
        }

    def explore_config(self, config: dict[str, Any]) -> dict[str, Any]:
        return self._explore_fn(config) if self._explore_fn is not None else {}

    def require_space(self, param_space: Mapping[str, Any]) -> None:
        for path in self._mutations:
            try:
                value_at(param_space, path)
            except (KeyError, TypeError):
                name = "".join(f"[{part!r}]" for part in path)
                raise ValueError(
                    f"hyperparam_mutations{name} is not in param_space: put the value that it starts from there"
                ) from None


def quantiles(scores: Mapping[int, float], fraction: float) -> tuple[set[int], set[int]]:
    """The worst and the best trials, equally many of each.

    Example:
        >>> quantiles({0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}, 0.25)
        ({0}, {3})
        >>> quantiles({0: 0.1, 1: 0.2, 2: 0.3, 3: float("nan")}, 0.25)
        ({3}, {2})
    """

    def rank(trial: int) -> float:
        return -math.inf if math.isnan(scores[trial]) else scores[trial]

    ranked = sorted(scores, key=rank)
    if len(ranked) < 2:
        return set(), set()
    count = min(len(ranked) // 2, max(1, int(len(ranked) * fraction))) if fraction else 0
    return set(ranked[:count]), set(ranked[len(ranked) - count :])


def mutated(
    value: Any,
    options: Domain | Callable[[], Any],
    rng: random.Random,
    resample_probability: float,
    factors: tuple[float, float],
) -> Any:
    """A mutated value: a neighbour in the list, or a multiple; or, with ``resample_probability``, a random one.

    Example:
        >>> mutated(0.8, Categorical((0.7, 0.8, 0.9)), random.Random(1), 0.0, (1.2, 0.8)) in (0.7, 0.9)
        True
    """
    if rng.random() < resample_probability:
        return options.draw(rng) if isinstance(options, Domain) else options()
    if isinstance(options, Categorical):
        if value not in options.values:
            return options.draw(rng)
        index = options.values.index(value) + rng.choice((-1, 1))
        return options.values[min(max(index, 0), len(options.values) - 1)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return options.draw(rng) if isinstance(options, Domain) else options()
    changed = value * rng.choice(factors)
    return type(value)(changed)


def _mutations(tree: Mapping[str, Any], path: Path = ()) -> Sequence[tuple[Path, Domain | Callable[[], Any]]]:
    found: list[tuple[Path, Domain | Callable[[], Any]]] = []
    for key, value in tree.items():
        if (domain := as_domain(value)) is not None:
            found.append(((*path, key), domain))
        elif isinstance(value, Mapping):
            found += _mutations(value, (*path, key))
        elif isinstance(value, (list, tuple)):
            found.append(((*path, key), Categorical(tuple(value))))
        elif callable(value):
            found.append(((*path, key), value))
        else:
            raise InvalidArgumentError(
                f"hyperparam_mutations[{key!r}] is {value!r}: pass a list of values, a function, or a search space such as "
                "tune.uniform(0, 1)"
            )
    return found
