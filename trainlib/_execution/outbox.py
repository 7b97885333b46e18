"""Events on their way from a worker to its coordinator, and the prints that become events."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from trainlib._execution.events import Failed, Finished, Output, Report, WorkerEvent

# Events are handed over a few at a time: one by one, a fast training function would keep a core busy
# with handing over.
GATHER_S = 0.02
# Reports that come seldom, and for which nobody waits, are gathered for longer: each hand-over takes milliseconds from a training that
# keeps all cores busy.
SELDOM_S = 0.2
_SELDOM = 2
"""Not more events than this while the first ones are gathered."""

# A coordinator that lags behind holds the training function up here rather than filling the memory.
CAPACITY = 20_000


class Outbox:
    """A queue that is filled by the training function and drained by one poll after the other."""

    def __init__(self, *, gathers_reports: bool = False) -> None:
        """
        Args:
            gathers_reports: Whether nobody waits for reports without checkpoints.
        """
        self._gathers_reports = gathers_reports
        self._events: deque[WorkerEvent] = deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._hurried = threading.Condition(self._lock)
        """For events that do not wait for others. Not told of any other: that would wake a thread for each report."""

    def put(self, event: WorkerEvent) -> None:
        with self._changed:
            while len(self._events) >= CAPACITY:
                self._changed.wait()
            self._events.append(event)
            self._changed.notify_all()
            if not self._may_wait(event):
                self._hurried.notify_all()

    def drain(self, timeout: float) -> list[WorkerEvent]:
        """All that is there; waits up to ``timeout`` seconds for the first."""
        with self._changed:
            if not self._events:
                self._changed.wait(timeout)
            if not self._events:
                return []
            self._hurried.wait_for(self._is_over, GATHER_S)
            if timeout and len(self._events) <= _SELDOM:
                self._hurried.wait_for(lambda: not all(map(self._may_wait, self._events)), SELDOM_S - GATHER_S)
            events = list(self._events)
            self._events.clear()
            self._changed.notify_all()
            return events

    def _is_over(self) -> bool:
        return bool(self._events) and isinstance(self._events[-1], (Finished, Failed))

    def _may_wait(self, event: WorkerEvent) -> bool:
        return self._gathers_reports and isinstance(event, Report) and event.checkpoint is None


class _Lines(io.TextIOBase):
    """A text stream that hands on whole lines. Of a line that is drawn over and over, only the last state counts."""

    encoding = "utf-8"

    def __init__(self, outbox: Outbox, is_error: bool) -> None:
        self._outbox = outbox
        self._is_error = is_error
        self._pieces: list[str] = []
        """What has been written of the present line."""
        self._starts_over = False
        """Whether the next piece overwrites them."""
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def write(self, text: str) -> int:
        if os.getpid() != self._pid:  # a forked child, e.g. of a data loader: nobody would ever collect its events
            return sys.__stderr__.write(text) if sys.__stderr__ is not None else len(text)
        with self._lock:
            *lines, rest = text.split("\n")
            for line in lines:
                self._add(line)
                self._end_line()
            self._add(rest)
        return len(text)

    def _add(self, text: str) -> None:
        """Add to the present line. A carriage return makes what follows it overwrite the line, as on a terminal."""
        visible = text.rstrip("\r")
        _, overwritten, kept = visible.rpartition("\r")
        if overwritten or (visible and self._starts_over):
            self._pieces.clear()
        if visible:
            self._pieces.append(kept)
            self._starts_over = False
        if text != visible:
            self._starts_over = True

    def _end_line(self) -> None:
        self._outbox.put(Output("".join(self._pieces), self._is_error))
        self._pieces.clear()
        self._starts_over = False

    def finish(self) -> None:
        with self._lock:
            if self._pieces:
                self._end_line()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return (sys.__stderr__ if self._is_error else sys.__stdout__).fileno()  # type: ignore[union-attr]


@contextmanager
def prints_into(outbox: Outbox) -> Iterator[None]:
    """Turn what is written to ``sys.stdout`` and ``sys.stderr`` into events."""
    before = sys.stdout, sys.stderr
    lines = _Lines(outbox, is_error=False), _Lines(outbox, is_error=True)
    sys.stdout, sys.stderr = lines
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in lines:
            stream.finish()
