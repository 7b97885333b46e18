"""The domains of a search space: what a value can be.

A sampler chooses numbers and labels, its *params*. A domain tells the sampler what it may choose, and turns the choice
into the value that the training function gets.
"""

from __future__ import annotations

import math
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from trainlib._secrets import masked
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    import optuna

__all__ = ["Categorical", "Domain", "Float", "Function", "Grid", "Integer", "Normal", "Param"]

Param = str | int | float | bool | None

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LONGEST_LABEL = 40


class Domain(ABC):
    """The set of values that one setting can have."""

    @abstractmethod
    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        """Let the sampler choose a param."""

    @abstractmethod
    def value(self, param: Param) -> Any:
        """The value that a param stands for."""

    @abstractmethod
    def draw(self, rng: random.Random) -> Any:
        """A random value, independent of any sampler."""


@dataclass(frozen=True)
class Float(Domain):
    """A number in a range, uniform or on a logarithmic scale, in steps of ``q`` if given."""

    lower: float
    upper: float
    log: bool = False
    q: float | None = None

    def __post_init__(self) -> None:
        _require_range(self.lower, self.upper, self.log)
        _require_step(self.lower, self.upper, self.q)

    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        # Optuna has no steps on a logarithmic scale, so the value is rounded instead.
        return trial.suggest_float(name, self.lower, self.upper, log=self.log, step=None if self.log else self.q)

    def value(self, param: Param) -> float:
        assert isinstance(param, (int, float))
        return _in_steps(float(param), self.q)

    def draw(self, rng: random.Random) -> float:
        return self.value(_between(rng, self.lower, self.upper, self.log))


@dataclass(frozen=True)
class Integer(Domain):
    """An integer from ``lower`` to ``upper``, excluding ``upper``. With ``q``, in steps of ``q`` and including it."""

    lower: int
    upper: int
    log: bool = False
    q: int | None = None

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            if isinstance(bound, bool) or int(bound) != bound:
                raise InvalidArgumentError(f"{bound!r} is not an integer: use uniform or quniform, or round it")
        _require_range(self.lower, self.upper, self.log)
        _require_step(self.lower, self.upper, self.q)

    @property
    def highest(self) -> int:
        return int(self.upper if self.q else self.upper - 1)

    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        step = 1 if self.log else int(self.q or 1)
        return trial.suggest_int(name, int(self.lower), self.highest, log=self.log, step=step)

    def value(self, param: Param) -> int:
        assert isinstance(param, (int, float))
        return int(_in_steps(int(param), self.q))

    def draw(self, rng: random.Random) -> int:
        if self.log:
            return self.value(min(self.highest, int(_between(rng, self.lower, self.highest + 1, True))))
        return int(rng.randrange(int(self.lower), self.highest + 1, int(self.q or 1)))


@dataclass(frozen=True)
class Normal(Domain):
    """A normally distributed number."""

    mean: float = 0.0
    sd: float = 1.0
    q: float | None = None

    def __post_init__(self) -> None:
        if not self.sd > 0:
            raise ValueError(f"sd is {self.sd}: the standard deviation must be greater than 0")

    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        # Optuna has no normal distribution. Its quantiles are uniform, which every sampler knows.
        return trial.suggest_float(name, 1e-6, 1 - 1e-6)

    def value(self, param: Param) -> float:
        assert isinstance(param, (int, float))
        return _in_steps(NormalDist(self.mean, self.sd).inv_cdf(param), self.q)

    def draw(self, rng: random.Random) -> float:
        return _in_steps(rng.gauss(self.mean, self.sd), self.q)


@dataclass(frozen=True)
class Categorical(Domain):
    """One of several values of any type."""

    values: tuple[Any, ...]
    name: str = ""
    """The setting that it is for. By its name, it may be a secret."""

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("choice() got no values: pass at least one")

    @cached_property
    def labels(self) -> list[Param]:
        """The names of the values for samplers, plots and what is stored: the values themselves where possible.

        Example:
            >>> Categorical((1, 2)).labels, Categorical(("x", "y"), name="api_key").labels
            ([1, 2], ['0: ********', '1: ********'])
        """
        values = [masked(value, self.name) for value in self.values]
        if all(isinstance(value, (str, int, float, bool, type(None))) for value in values):
            distinct = len(set(values)) == len(values)
            if distinct and not any(isinstance(value, float) and math.isnan(value) for value in values):
                return values
        names = [label(value) for value in values]
        if len(set(names)) == len(names):
            return list(names)
        return [f"{index}: {name}" for index, name in enumerate(names)]

    def index(self, param: Param) -> int:
        return self.labels.index(param)

    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        return trial.suggest_categorical(name, self.labels)  # type: ignore[call-overload,no-any-return]

    def value(self, param: Param) -> Any:
        return self.values[self.index(param)]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(self.values)


@dataclass(frozen=True)
class Grid(Categorical):
    """Values that are all tried, each with every combination of the other grids."""

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("grid_search() got no values, so there would be no trial: pass at least one")


@dataclass(frozen=True)
class Function(Domain):
    """A value that is computed from the others. Samplers do not see it."""

    function: Callable[..., Any]
    takes_config: bool = True

    def suggest(self, trial: optuna.Trial, name: str) -> Param:
        raise AssertionError("a function is called, not sampled")

    def value(self, param: Param) -> Any:
        raise AssertionError("a function is called, not sampled")

    def draw(self, rng: random.Random) -> Any:
        return self.function() if not self.takes_config else self.function({})

    def compute(self, config: Any) -> Any:
        """The value in a trial with this config."""
        return self.function(config) if self.takes_config else self.function()


def label(value: Any) -> str:
    """A short text for a value.

    Example:
        >>> label(0.001), label([64, 32]), label(len)
        ('0.001', '[64, 32]', 'len')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (str, int, bool, type(None), list, tuple, dict)):
        text = _ADDRESS.sub("", str(value))
    else:
        own = getattr(value, "__name__", None)
        text = own if isinstance(own, str) else type(value).__name__
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _require_range(lower: float, upper: float, log: bool) -> None:
    for bound in (lower, upper):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise InvalidArgumentError(f"{bound!r} is not a valid bound: pass a finite number")
    if not lower < upper:
        raise ValueError(f"the range from {lower} to {upper} is empty: pass the lower bound first")
    if log and lower <= 0:
        raise ValueError(f"a logarithmic range cannot start at {lower}: pass a lower bound greater than 0")


def _require_step(lower: float, upper: float, q: float | None) -> None:
    if q is None:
        return
    if not q > 0:
        raise ValueError(f"q is {q}: the step must be greater than 0")
    for bound in (lower, upper):
        if not math.isclose(bound / q, round(bound / q), abs_tol=1e-9):
            raise ValueError(f"{bound} is not a multiple of the step {q}: pass bounds that are")


def _in_steps(value: float, q: float | None) -> float:
    return value if q is None else round(value / q) * q


def _between(rng: random.Random, lower: float, upper: float, log: bool) -> float:
    return math.exp(rng.uniform(math.log(lower), math.log(upper))) if log else rng.uniform(lower, upper)
