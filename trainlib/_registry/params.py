"""How the params of a run are written to MLflow: flat, with names and values that it accepts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from trainlib._registry.names import stored_name
from trainlib._secrets import masked

if TYPE_CHECKING:
    from mlflow.entities import Param

_LONGEST_VALUE = 6000


def flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested params with their keys joined by dots. MLflow's charts compare runs by such keys.

    Example:
        >>> flat({"model": {"lr": 0.1}, "epochs": 3})
        {'model.lr': 0.1, 'epochs': 3}
        >>> flat({"model": {"lr": 0.1}, "model.lr": 0.2})
        {'model.lr': 0.1, 'model.lr-2': 0.2}
    """
    result: dict[str, Any] = {}
    for key, value in params.items():
        nested = flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else {f"{prefix}{key}": value}
        for name, item in nested.items():
            result[_not_in(result, name)] = item
    return result


def _not_in(taken: Mapping[str, Any], name: str) -> str:
    """The name, or if that is taken, with a number: keys that have dots themselves may say the same as nested ones."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in taken)


def stored_values(params: Mapping[str, Any]) -> dict[str, str]:
    """Params with names and values that MLflow accepts. Secrets are masked.

    Example:
        >>> stored_values({"lr": 0.1, "layers": (1, 2)})
        {'lr': '0.1', 'layers': '(1, 2)'}
        >>> stored_values({"init": flat})
        {'init': 'trainlib._registry.params:flat'}
    """
    return {stored_name(key): str(masked(_named(value), key))[:_LONGEST_VALUE] for key, value in params.items()}


def _named(value: Any) -> Any:
    """A function by its name: its text has an address in it, which is another one in each process."""
    return f"{value.__module__}:{value.__qualname__}" if isinstance(value, FunctionType) else value


def stored_params(params: Mapping[str, Any]) -> list[Param]:
    """Params as MLflow's client takes them."""
    from mlflow.entities import Param

    return [Param(key, value) for key, value in stored_values(params).items()]
