"""The functions that a user puts in ``param_space`` in place of a value."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sized
from typing import Any

from trainlib.errors import InvalidArgumentError
from trainlib.tune._domains import Categorical, Domain, Float, Function, Grid, Integer, Normal

__all__ = [
    "choice",
    "grid_search",
    "lograndint",
    "loguniform",
    "qlograndint",
    "qloguniform",
    "qrandint",
    "qrandn",
    "quniform",
    "randint",
    "randn",
    "sample_from",
    "uniform",
]

_GRID = "grid_search"


def grid_search(values: Iterable[Any]) -> dict[str, list[Any]]:
    """Try each of these values with every combination of the other grids, ``num_samples`` times.

    Example:
        >>> from trainlib import tune
        >>> tune.grid_search([1, 2, 3])
        {'grid_search': [1, 2, 3]}
    """
    return {_GRID: list(_finite(values, _GRID))}


def choice(values: Iterable[Any]) -> Domain:
    """One of these values. They may be of any type: numbers, trainers, dicts with search spaces in them.

    Example:
        >>> from trainlib import tune
        >>> tune.choice(["relu", "tanh"]).labels
        ['relu', 'tanh']
    """
    return Categorical(tuple(_finite(values, "choice")))


def uniform(lower: float, upper: float) -> Domain:
    """A number between ``lower`` and ``upper``.

    Example:
        >>> from trainlib import tune
        >>> tune.uniform(0, 1)
        Float(lower=0, upper=1, log=False, q=None)
    """
    return Float(lower, upper)


def quniform(lower: float, upper: float, q: float) -> Domain:
    """A number from ``lower`` to ``upper``, both included, in steps of ``q``.

    Example:
        >>> from trainlib import tune
        >>> tune.quniform(0, 1, 0.25).value(0.5)
        0.5
    """
    return Float(lower, upper, q=q)


def loguniform(lower: float, upper: float, base: float = 10) -> Domain:
    """A number between ``lower`` and ``upper``, uniform on a logarithmic scale. ``base`` makes no difference.

    Example:
        >>> from trainlib import tune
        >>> tune.loguniform(1e-4, 1e-1).log
        True
    """
    return Float(lower, upper, log=True)


def qloguniform(lower: float, upper: float, q: float, base: float = 10) -> Domain:
    """Like :func:`loguniform`, rounded to steps of ``q``.

    Example:
        >>> from trainlib import tune
        >>> tune.qloguniform(1, 100, 0.5).value(3.1)
        3.0
    """
    return Float(lower, upper, log=True, q=q)


def randint(lower: int, upper: int) -> Domain:
    """An integer from ``lower`` to ``upper``, excluding ``upper``.

    Example:
        >>> from trainlib import tune
        >>> tune.randint(1, 4).highest
        3
    """
    return Integer(lower, upper)


def qrandint(lower: int, upper: int, q: int = 1) -> Domain:
    """An integer from ``lower`` to ``upper``, both included, in steps of ``q``.

    Example:
        >>> from trainlib import tune
        >>> tune.qrandint(16, 128, 16).highest
        128
    """
    return Integer(lower, upper, q=q)


def lograndint(lower: int, upper: int, base: float = 10) -> Domain:
    """Like :func:`randint`, but uniform on a logarithmic scale.

    Example:
        >>> from trainlib import tune
        >>> tune.lograndint(1, 1000).log
        True
    """
    return Integer(lower, upper, log=True)


def qlograndint(lower: int, upper: int, q: int, base: float = 10) -> Domain:
    """Like :func:`qrandint`, but uniform on a logarithmic scale.

    Example:
        >>> from trainlib import tune
        >>> tune.qlograndint(10, 1000, 10).value(58)
        60
    """
    return Integer(lower, upper, log=True, q=q)


def randn(mean: float = 0.0, sd: float = 1.0) -> Domain:
    """A normally distributed number.

    Example:
        >>> from trainlib import tune
        >>> tune.randn(10, 2).value(0.5)
        10.0
    """
    return Normal(mean, sd)


def qrandn(mean: float, sd: float, q: float) -> Domain:
    """A normally distributed number, rounded to steps of ``q``.

    Example:
        >>> from trainlib import tune
        >>> tune.qrandn(10, 2, 0.5).value(0.5)
        10.0
    """
    return Normal(mean, sd, q=q)


def sample_from(function: Callable[..., Any]) -> Domain:
    """A value that a function returns. It may take the trial's config, as ``config`` or as ``spec.config``.

    Example:
        >>> from trainlib import tune
        >>> space = {"width": tune.randint(1, 9), "depth": tune.sample_from(lambda config: 10 - config["width"])}
    """
    return Function(function, takes_config=_takes_config(function))


def as_domain(value: Any) -> Domain | None:
    """The domain that an entry of a search space stands for, in any spelling. None if it is a plain value."""
    if isinstance(value, Domain):
        return value
    if isinstance(value, dict):
        return Grid(tuple(_finite(value[_GRID], _GRID))) if value.keys() == {_GRID} else None
    if type(value).__module__ == "ray.tune.search.sample":
        return _of_ray(value)
    return None


def _of_ray(value: Any) -> Domain | None:
    """The same domain for one of Ray's own objects. Ray Tune is imported only if the user did so."""
    sample = sys.modules["ray.tune.search.sample"]
    if not isinstance(value, sample.Domain):
        return None
    sampler, q = value.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, q = sampler.get_sampler(), sampler.q
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(value, sample.Categorical):
        return Categorical(tuple(value.categories))
    if isinstance(value, sample.Function):
        return Function(value.func, takes_config=value.pass_config)
    if isinstance(value, sample.Integer):
        return Integer(value.lower, value.upper, log, q)
    if isinstance(sampler, sample.Normal):
        return Normal(sampler.mean, sampler.sd, q)
    if isinstance(value, sample.Float):
        return Float(value.lower, value.upper, log, q)
    raise ValueError(f"{value!r} is an object of Ray Tune that is not supported: use a function of trainlib.tune")


def _finite(values: Iterable[Any], name: str) -> Iterable[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"{name}() got {values!r}: pass a list of values")
    if not isinstance(values, Sized):
        raise InvalidArgumentError(
            f"{name}() got a {type(values).__name__}, which may never end: pass a list of values"
        )
    return values


def _takes_config(function: Any) -> bool:
    if not callable(function):
        raise InvalidArgumentError(f"sample_from() got {function!r}: pass a function")
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        try:
            inspect.signature(function).bind()
        except TypeError:
            name = getattr(function, "__name__", repr(function))
            raise ValueError(
                f"sample_from() calls {name} with the config or without arguments, but it needs more"
            ) from None
        return False
    return True
