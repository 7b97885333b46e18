"""What Prefect keeps in memory for a server that does not answer: log lines and events. Its queues have no bound of their own.

A training that prints much, while its server is away for hours, would fill the memory of its process.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect.events.worker import EventsWorker
from prefect.logging import handlers
from prefect.settings import PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE, temporary_settings

from trainlib.tasks._prefect_server import wait_until_it_answers

__all__ = ["bounded_queues", "give_up_at_exit"]

# Some 30,000 log lines as people print them. Prefect takes up to 4 MB of them from the queue at a time.
MOST_BYTES = 40_000_000
MOST_EVENTS = 10_000
# What a line takes besides its text.
_LINE_BYTES = 1_000
# Warnings and errors find room where other lines do not any more.
_ROOM_FOR_WARNINGS = 1.25

_log = logging.getLogger("trainlib")


@contextmanager
def bounded_queues() -> Iterator[None]:
    """Within the block, what is too much for Prefect's queues is dropped. The terminal and MLflow are not affected."""
    if handlers._api_log_sink is None:  # Prefect's task runners with processes have their own
        handlers.set_api_log_sink(_sink)
    most = PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE.value() or MOST_EVENTS
    for worker in _workers():  # the setting is only read when one is made
        if isinstance(worker, EventsWorker) and worker._queue.maxsize == 0:
            worker._queue.maxsize = most
    with temporary_settings({PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE: most}):
        yield


def give_up_at_exit() -> None:
    """Let this process end without what its server has not taken, unless it answers by then.

    Prefect's own threads would first try to send each event for some ten seconds: after a sweep, that is many minutes.
    """
    # Before those threads' own exit handlers, which wait for them: the latest is called first.
    threading._register_atexit(_give_up)  # type: ignore[attr-defined]


def _give_up() -> None:
    if wait_until_it_answers(0.0):
        return
    for worker in _workers():
        task, loop = worker._task, worker._loop
        if task is not None and loop is not None:
            loop.call_soon_threadsafe(task.cancel)


def _workers() -> list[Any]:
    """Prefect's threads of this process that send something to its server."""
    instances: dict[int, Any] = EventsWorker._instances  # type: ignore[misc]
    return [one for one in list(instances.values()) if isinstance(one, (EventsWorker, handlers.APILogWorker))]


class _BoundedLogSink:
    """Hands log lines to Prefect's worker, as long as not too many wait there. Says so once, until they are fewer again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: deque[int] = deque()
        """Those of the lines that wait, in their order."""
        self._bytes = 0
        self._dropped = 0
        """How many lines have been dropped since one was last taken."""
        self._told = False

    def __call__(self, line: dict[str, Any]) -> None:
        worker = handlers.APILogWorker.instance()
        size = _LINE_BYTES + line.get("__payload_size__", 0)
        with self._lock:
            self._forget_sent(worker._queue.qsize())  # for events there is a setting; for log lines, nothing else tells
            has_room = self._bytes + size <= MOST_BYTES * _share_of(line)
            is_first = not has_room and not self._told
            if has_room:
                if self._dropped:
                    self._hand_over(worker, _about_missing(line, self._dropped), _LINE_BYTES)
                    self._dropped = 0
                self._hand_over(worker, line, size)
            else:
                self._dropped += 1
            self._told = is_first or (self._told and self._bytes > MOST_BYTES // 2)
        if is_first:  # not within the lock: it may be shown in Prefect, too
            _log.warning(
                "The Prefect server does not take log lines. Until it does, further lines are not shown in Prefect."
            )

    def _forget_sent(self, waiting: int) -> None:
        while len(self._sizes) > waiting:
            self._bytes -= self._sizes.popleft()

    def _hand_over(self, worker: handlers.APILogWorker, line: dict[str, Any], size: int) -> None:
        self._sizes.append(size)
        self._bytes += size
        worker.send(line)


def _share_of(line: dict[str, Any]) -> float:
    """The part of all room that a line may use."""
    return _ROOM_FOR_WARNINGS if line["level"] >= logging.WARNING else 1.0


def _about_missing(after: dict[str, Any], count: int) -> dict[str, Any]:
    """The line that stands in Prefect for those that are missing."""
    message = f"{count:,} line(s) are missing here: they were printed while the Prefect server did not take any."
    kept = {name: value for name, value in after.items() if name != "__payload_size__"}
    return {**kept, "level": logging.WARNING, "message": message}


_sink = _BoundedLogSink()
