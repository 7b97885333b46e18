"""Writes in the background, many items at a time, so that whoever has something to write never waits for a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["BatchWriter"]

T = TypeVar("T")

# What comes in this time is written together, or so many items if they come sooner.
GATHER_S = 0.5
BATCH = 250
# So many items wait at most. With more, whoever brings another one waits a little.
MOST_WAITING = 5_000
LONGEST_WAIT_S = 5.0
CLOSE_S = 10.0


class BatchWriter(Generic[T]):
    """Hands items on to a function, in their order, in a thread of its own that begins with the first one.

    A disk that hangs costs items, and not the training: those that do not fit are counted as :attr:`dropped`.
    """

    def __init__(self, write: Callable[[list[T]], None], name: str) -> None:
        """
        Args:
            write: Writes some items. It must not raise.
            name: What the thread is called.
        """
        self._write = write
        self._name = name
        self._items: list[T] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self.dropped = 0
        """How many items were lost, because writing took too long."""

    def put(self, item: T) -> None:
        """Have it written soon."""
        with self._changed:
            if len(self._items) >= MOST_WAITING and not self._changed.wait_for(self._has_room, LONGEST_WAIT_S):
                self.dropped += 1
                return
            self._items.append(item)
            if self._thread is None:
                self._closing = False
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            if len(self._items) in (1, BATCH):
                self._changed.notify_all()

    def close(self) -> None:
        """Write what is left. What comes later begins anew."""
        with self._changed:
            thread, self._thread, self._closing = self._thread, None, True
            self._changed.notify_all()
        if thread is not None:
            thread.join(CLOSE_S)

    def _has_room(self) -> bool:
        return len(self._items) < MOST_WAITING

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._closing)
                self._changed.wait_for(lambda: self._closing or len(self._items) >= BATCH, GATHER_S)
                items, self._items = self._items, []
                self._changed.notify_all()
            if not items:
                return
            self._write(items)
