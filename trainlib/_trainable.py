"""Which functions a form may name. Whoever can start a run of a deployment must not be able to call anything else."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["load_trainable", "trainable"]

MODULES = "TRAINLIB_TRAINABLE_MODULES"
_MARK = "__trainlib_trainable__"

F = TypeVar("F", bound=Callable[..., Any])


def trainable(function: F) -> F:
    """Mark a training function, so that it can be named in the form of a deployment.

    Example:
        >>> @trainable
        ... def train_func(config):
        ...     ...
    """
    setattr(function, _MARK, True)
    return function


def load_trainable(path: str) -> Any:
    """The training function that a form names as ``module:function``.

    Raises:
        ValueError: there is no such function, or it may not be used.
    """
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"train_loop is {path!r}, but it cannot be loaded ({error}). Write it as module:function, with a module that "
            "can be imported where the flow runs."
        ) from error
    if not (getattr(found, _MARK, False) is True or _is_allowed(module)):
        raise ValueError(
            f"train_loop is {path!r}, which is not marked as a training function. Decorate it with @trainlib.trainable, or "
            f"allow its module where the flow runs: {MODULES}={module}"
        )
    return found


def _is_allowed(module: str) -> bool:
    """Whether whoever runs the deployment allows all functions of a module, or of a package around it."""
    allowed = [name.strip() for name in os.environ.get(MODULES, "").split(",")]
    return any(module == name or module.startswith(f"{name}.") for name in allowed if name)
