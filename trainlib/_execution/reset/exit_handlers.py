"""Functions that user's code has asked Python to call when the process ends."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Any

from trainlib._execution.reset.loaded import is_users

__all__ = ["drop_users_handlers", "watch_handlers"]

_register = atexit.register
_registered: list[Callable[..., Any]] = []


def watch_handlers() -> None:
    """Remember which functions are registered from now on."""
    atexit.register = _remembering  # type: ignore[assignment]


def drop_users_handlers() -> None:
    """Unregister those that user's code has registered: in a worker that is ended they would not be called either."""
    for handler in _registered:
        module = getattr(handler, "__module__", None)
        if module not in sys.modules or module == "__main__" or is_users(module):
            atexit.unregister(handler)
    _registered.clear()


def _remembering(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    _registered.append(function)
    return _register(function, *args, **kwargs)
