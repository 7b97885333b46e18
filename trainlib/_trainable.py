"""Which functions a form may name. Whoever can start a run of a deployment must not be able to call anything else."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["import_function", "load_trainable", "path_of", "require_trainable", "trainable"]

MODULES = "TRAINLIB_TRAINABLE_MODULES"
_MARK = "__trainlib_trainable__"

F = TypeVar("F", bound=Callable[..., Any])


def trainable(function: F) -> F:
    """Mark a function that trains, evaluates or predicts, so that it can be named in the form of a deployment.

    Example:
        >>> @trainable
        ... def train_func(config):
        ...     ...
    """
    setattr(function, _MARK, True)
    return function


def load_trainable(path: str, field: str = "train_loop") -> Any:
    """The function that a form names as ``module:function``.

    Args:
        path: The function.
        field: The field that names it, for errors.

    Raises:
        ValueError: there is no such function, or it may not be used.
    """
    module = path.partition(":")[0]
    try:
        found = import_function(path)
    except Exception as error:  # the user's module may raise anything
        raise ValueError(
            f"{field} is {path!r}, but it cannot be loaded ({error}). Write it as module:function, with a module that "
            "can be imported where the flow runs."
        ) from error
    if not (getattr(found, _MARK, False) is True or (_is_allowed(module) and _is_allowed(home := _module_of(found)))):
        raise ValueError(f"{field} is {path!r}, {_not_marked(home if _is_allowed(module) else module, field)}")
    return found


def import_function(path: str) -> Any:
    """What ``module:function`` names, whether a form may call it or not."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def require_trainable(function: Any) -> None:
    """Raise an error if no form may call a function that was recorded with a run.

    Raises:
        ValueError: it is neither marked nor in a module that is allowed.
    """
    function = inspect.unwrap(function)  # a sweep wraps functions that return their last report
    path = path_of(function)
    module = path.partition(":")[0]
    if not (getattr(function, _MARK, False) is True or _is_allowed(module)):
        raise ValueError(f"it trains {path}, {_not_marked(module)}")


def _not_marked(module: str, field: str = "train_loop") -> str:
    what = "a training function" if field == "train_loop" else "a function that forms may name"
    return (
        f"which is not marked as {what}. Decorate it with @trainlib.trainable, or allow its module where the "
        f"flow runs: {MODULES}={module}"
    )


def _module_of(found: Any) -> str:
    """Where something is defined. A module that is allowed has imported other things, such as ``subprocess``."""
    return path_of(inspect.unwrap(found)).partition(":")[0]


def path_of(function: Any) -> str:
    """How a form would name a function, whether it may name it or not.

    Example:
        >>> path_of(trainable)
        'trainlib._trainable:trainable'
    """
    module = getattr(function, "__module__", None) or "__main__"
    return f"{module}:{getattr(function, '__qualname__', None) or type(function).__name__}"


def _is_allowed(module: str) -> bool:
    """Whether whoever runs the deployment allows all functions of a module, or of a package around it."""
    allowed = [name.strip() for name in os.environ.get(MODULES, "").split(",")]
    return any(module == name or module.startswith(f"{name}.") for name in allowed if name)
