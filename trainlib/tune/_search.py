"""Chooses the next point with an Optuna sampler, which learns from the results of the others."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from trainlib.tune._domains import Domain, Param
from trainlib.tune._point import Point
from trainlib.tune._space import Space

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

__all__ = ["Search", "SearchName"]

SearchName = Literal["random", "tpe", "cmaes", "gp"]


class Search:
    """Gets points from a sampler, and records their scores for it. Thread-safe."""

    def __init__(self, space: Space, sampler: SearchName | BaseSampler, *, mode: str | None, seed: int | None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._given = sampler
        self._seed = seed
        self._lock = threading.Lock()
        self.study = optuna.create_study(
            direction="maximize" if mode == "max" else "minimize", sampler=make_sampler(sampler, seed)
        )
        self._asked: dict[int, optuna.Trial] = {}

    def ask(self, number: int) -> tuple[Point, Any]:
        """The point of a trial, and its config."""
        import optuna

        with self._lock:
            if fixed := self._space.grid_params(number):
                self.study.enqueue_trial(fixed)
            trial = self.study.ask()
            self._asked[number] = trial

            def choose(name: str, domain: Domain) -> Param:
                return domain.suggest(trial, name)

            config, computed = self._space.resolve(choose)
            to_json = optuna.distributions.distribution_to_json
            distributions = {name: to_json(found) for name, found in trial.distributions.items()}
            return Point(number, dict(trial.params), distributions, computed), config

    def reseed_after(self, trials: int) -> None:
        """Reseed the sampler of a restored sweep, so that it does not choose the first points again."""
        if trials and isinstance(self._given, str):
            known = self.study.get_trials(deepcopy=False)
            self.study.sampler = make_sampler(self._given, None if self._seed is None else self._seed + trials, known)
        elif trials:
            self.study.sampler.reseed_rng()

    def record_score(self, point: Point, value: float | None, *, iteration: int = 0, stopped: bool = False) -> None:
        """Record the score of a trial that has ended, None if it failed. The point may come from an earlier process."""
        import optuna
        from optuna.trial import TrialState, create_trial

        failed = value is None or not math.isfinite(value)
        state = TrialState.FAIL if failed else TrialState.PRUNED if stopped else TrialState.COMPLETE
        with self._lock:
            trial = self._asked.pop(point.number, None)
            if trial is not None:
                if state is TrialState.PRUNED:
                    assert value is not None
                    trial.report(value, iteration)
                self.study.tell(trial, None if state is not TrialState.COMPLETE else value, state=state)
                return
            from_json = optuna.distributions.json_to_distribution
            self.study.add_trial(
                create_trial(
                    state=state,
                    value=None if failed else value,
                    params=point.params,
                    distributions={name: from_json(text) for name, text in point.distributions.items()},
                    intermediate_values={} if failed or value is None else {iteration: value},
                )
            )


def make_sampler(sampler: SearchName | BaseSampler, seed: int | None, known: Sequence[FrozenTrial] = ()) -> BaseSampler:
    """The sampler of that name, or the one that was passed. ``known`` are trials of an earlier process.

    Raises:
        ImportError: it needs a package that is not installed.
    """
    from optuna import samplers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls some of them experimental
        match sampler:
            case "random":
                return samplers.RandomSampler(seed=seed)
            case "tpe":
                return samplers.TPESampler(seed=seed)
            case "cmaes":
                _require("cmaes", "cmaes")
                # Its state was in the memory of the earlier process. It restarts from where the known trials were good.
                ended = [trial for trial in known if trial.state.name == "COMPLETE"] or None
                return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False, source_trials=ended)
            case "gp":
                _require("gp", "torch", "scipy")
                return samplers.GPSampler(seed=seed, warn_independent_sampling=False)
    assert not isinstance(sampler, str)
    return sampler


def _require(name: str, *packages: str) -> None:
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise ImportError(f"search_alg={name!r} needs {package}: pip install {package}")
