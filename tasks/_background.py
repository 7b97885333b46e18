"""Sends what people see to Prefect, behind the training: nobody waits for a server that is slow, hangs or is gone."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable

__all__ = ["BackgroundSender", "show"]

_log = logging.getLogger(__name__)


def show(call: Callable[[], object], *, wait: float = 5.0) -> None:
    """Make one call that shows something, and wait for it for at most so many seconds."""
    sender = BackgroundSender()
    sender.send("artifact", call)
    sender.flush(wait)


class BackgroundSender:
    """Makes calls in a thread of its own, one after the other. Of two calls with one key, only the latest is made.

    So there is never more to send than there are keys, however slow the other side is. A call that fails is dropped: it is
    no reason to end a training, and the next one tells more anyway.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], object]] = {}
        self._changed = threading.Condition()
        self._is_sending = False
        self._context = contextvars.copy_context()
        """What is sent belongs to the flow and task run in which this object was made."""

    def send(self, key: str, call: Callable[[], object]) -> None:
        """Make a call soon, in the place of one with the same key that has not been made yet. Does not wait."""
        with self._changed:
            self._waiting[key] = call
            if not self._is_sending:
                self._is_sending = True
                threading.Thread(target=self._context.run, args=(self._run,), name="to-prefect", daemon=True).start()

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is left to send, for at most ``timeout`` seconds. Returns whether nothing is."""
        deadline = time.monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_sending, max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_sending = False
                    self._changed.notify_all()
                    return
                key = next(iter(self._waiting))
                call = self._waiting.pop(key)
            try:
                call()
            except Exception as error:  # whatever it is, it concerns only what people see
                _log.debug("could not send %s to Prefect: %s", key, error)
