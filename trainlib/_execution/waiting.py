"""Waiting for Ray in a way that a signal can interrupt.

A signal that arrives inside ``ray.get`` comes out as an ordinary error, so that Prefect would retry a
cancelled training. Waiting on a Python future lets Ctrl-C and SIGTERM through as what they are.

Signals reach the main thread only. Trials wait in other threads, and are interrupted through an event. So is the main thread
when somebody suspends its flow run, which comes without a signal.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_CHECK_S = 0.2
_RAY_CHECK_S = 1.0
_thread = threading.local()


class CancelledInThreadError(BaseException):
    """Ends what a thread is doing, as KeyboardInterrupt does in the main one. Not an Exception: nobody may retry it."""


class SuspendedInThreadError(CancelledInThreadError):
    """Ends what a thread is doing until somebody resumes it. Nobody is in a hurry: what is to be saved is waited for."""


class Interruption(threading.Event):
    """Ends what a thread is doing once it is set."""

    suspends = False
    """Whether what it ends goes on later."""

    def suspend(self) -> None:
        """Set it, and say that what it ends goes on later."""
        self.suspends = True
        self.set()


@contextmanager
def cancelled_by(event: Interruption | None) -> Iterator[None]:
    """Within the block, setting ``event`` ends whatever this thread waits for; with None, nothing does."""
    before = getattr(_thread, "cancel", None)
    _thread.cancel = event
    try:
        yield
    finally:
        _thread.cancel = before


def interruption() -> Interruption | None:
    """What may end whatever this thread waits for."""
    return getattr(_thread, "cancel", None)


def raise_if_cancelled() -> None:
    """Raise if the event of :func:`cancelled_by` is set.

    Raises:
        CancelledInThreadError: it is. It is a SuspendedInThreadError if what it ends goes on later.
    """
    event = getattr(_thread, "cancel", None)
    if event is not None and event.is_set():
        raise SuspendedInThreadError if event.suspends else CancelledInThreadError


def pause(seconds: float) -> None:
    """Sleep. Whoever cancels this thread ends it."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        raise_if_cancelled()
        time.sleep(min(_CHECK_S, left))


def gather(refs: Sequence[Any], timeout: float | None = None) -> list[Any]:
    """The values of all refs, in order. Raises the first error that arrives, TimeoutError, or RayLostError."""
    from trainlib._execution import liveness  # it imports Ray, and the frameworks' settings import this module

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
