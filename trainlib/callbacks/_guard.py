"""Calls the user's callbacks so that one that raises does not end the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainlib.callbacks._callback import Callback

__all__ = ["CallbackGuard"]


class CallbackGuard:
    """Calls methods of callbacks. What one raises is said once for each of its methods, and it is called again all the same."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[tuple[int, str]] = set()

    def call(self, callback: Callback, method: str, *args: Any, **arguments: Any) -> None:
        """Call a method of a callback."""
        try:
            getattr(callback, method)(*args, **arguments)
        except Exception as error:
            if (id(callback), method) not in self._said:
                self._said.add((id(callback), method))
                self._say(
                    f"the callback {type(callback).__name__} raised {type(error).__name__} in {method}(): {error}. The training goes "
                    f"on. This is said once."
                )
