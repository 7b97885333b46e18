"""How the params of a run are written to MLflow: flat, with names and values that it accepts."""

from __future__ import annotations

from collections.abc import Mapping
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
    """
    result: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping) and value:
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[f"{prefix}{key}"] = value
    return result


def stored_values(params: Mapping[str, Any]) -> dict[str, str]:
    """Params with names and values that MLflow accepts. Secrets are masked.

    Example:
        >>> stored_values({"lr": 0.1, "layers": (1, 2)})
        {'lr': '0.1', 'layers': '(1, 2)'}
    """
    return {stored_name(key): str(masked(value, key))[:_LONGEST_VALUE] for key, value in params.items()}


def stored_params(params: Mapping[str, Any]) -> list[Param]:
    """Params as MLflow's client takes them."""
    from mlflow.entities import Param

    return [Param(key, value) for key, value in stored_values(params).items()]
