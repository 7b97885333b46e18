"""Signals that are not lost.

A signal's handler raises an exception in the main thread. If that happens inside a destructor, or the callback of a weak
reference, Python prints the exception and goes on, so that Ctrl-C has no effect. So the signal is remembered here, and
its handler is called once more from a place where the exception gets through.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_handlers: dict[int, Any] = {}
_arrived: list[int] = []


@contextmanager
def remembered() -> Iterator[None]:
    """Remember SIGINT and SIGTERM while the block runs. Only the main thread receives them; elsewhere this does nothing."""
    if threading.current_thread() is not threading.main_thread() or _handlers:
        yield
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(handler := signal.getsignal(number)):
            _handlers[number] = handler
            signal.signal(number, _remember)
    try:
        yield
    finally:
        for each, handler in _handlers.items():
            if signal.getsignal(each) is _remember:
                signal.signal(each, handler)
        _handlers.clear()
        _arrived.clear()


def raise_lost() -> None:
    """Raise what a signal should have raised already. Called where the main thread waits, and never during clean-up."""
    if _arrived and threading.current_thread() is threading.main_thread():
        number = _arrived[-1]
        _handlers[number](number, None)


def _remember(number: int, frame: FrameType | None) -> None:
    _arrived.append(number)
    _handlers[number](number, frame)
