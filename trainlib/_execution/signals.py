"""Signals that are not lost.

A signal's handler raises an exception in the main thread. If that happens inside a destructor, or the callback of a weak
reference, Python prints the exception and goes on, so that Ctrl-C has no effect. So Python is asked to note down which
signals arrive, and the handler of one that had no effect is called once more from a place where the exception gets through.

No handler is replaced: Prefect tells a run that is cancelled from one that is killed only as long as its own is in place.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_notes: int | None = None
"""The end of a pipe from which the numbers of signals that have arrived are read, one byte each."""
_arrived = bytearray()


@contextmanager
def remembered() -> Iterator[None]:
    """Remember SIGINT and SIGTERM while the block runs. Only the main thread receives them; elsewhere this does nothing."""
    global _notes
    if threading.current_thread() is not threading.main_thread() or _notes is not None:
        yield
        return
    _notes, noted_into = os.pipe()
    for end in (_notes, noted_into):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(noted_into, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        _read_notes()
        if before != -1 and _arrived:  # an event loop that the user's code runs waits for them
            os.write(before, _arrived)
        for end in (_notes, noted_into):
            os.close(end)
        _notes = None
        _arrived.clear()


def raise_lost() -> None:
    """Raise what a signal should have raised already. Called where the main thread waits, and never during clean-up."""
    if _notes is None or threading.current_thread() is not threading.main_thread():
        return
    _read_notes()
    for number in _SIGNALS:
        if number in _arrived and callable(handler := signal.getsignal(number)):
            handler(number, None)


def _read_notes() -> None:
    assert _notes is not None
    with suppress(BlockingIOError):  # none has arrived
        _arrived.extend(os.read(_notes, 4096))
