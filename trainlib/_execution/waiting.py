"""Waiting for Ray in a way that a signal can interrupt.

A signal that arrives inside ``ray.get`` comes out as an ordinary error, so that Prefect would retry a
cancelled training. Waiting on a Python future lets Ctrl-C and SIGTERM through as what they are.

Signals reach the main thread only. Trials wait in other threads, and are cancelled through an event.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trainlib._execution import liveness

_CHECK_S = 0.2
_RAY_CHECK_S = 1.0
_thread = threading.local()


class CancelledInThreadError(BaseException):
    """Ends what a thread is doing, as KeyboardInterrupt does in the main one. Not an Exception: nobody may retry it."""


@contextmanager
def cancelled_by(event: threading.Event | None) -> Iterator[None]:
    """Within the block, setting ``event`` ends whatever this thread waits for; with None, nothing does."""
    before = getattr(_thread, "cancel", None)
    _thread.cancel = event
    try:
        yield
    finally:
        _thread.cancel = before


def raise_if_cancelled() -> None:
    """Raise if the event of :func:`cancelled_by` is set."""
    event = getattr(_thread, "cancel", None)
    if event is not None and event.is_set():
        raise CancelledInThreadError


def gather(refs: Sequence[Any], timeout: float | None = None) -> list[Any]:
    """The values of all refs, in order. Raises the first error that arrives, TimeoutError, or RayLostError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    session = liveness.session()
    futures = [ref.future() for ref in refs]
    look_s = _RAY_CHECK_S if getattr(_thread, "cancel", None) is None else _CHECK_S
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        step = look_s if left is None else min(look_s, left)
        done, pending = concurrent.futures.wait(futures, timeout=step, return_when=concurrent.futures.FIRST_EXCEPTION)
        raise_if_cancelled()
        if pending:
            liveness.require(session)
        if not pending or step == left or any(future.exception() for future in done):
            break
    for future in futures:
        if future in done:
            future.result()  # raises what it failed with
    if pending:
        raise TimeoutError(f"{len(pending)} of {len(futures)} workers did not answer in {timeout:g} s")
    return [future.result() for future in futures]
