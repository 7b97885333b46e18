"""What Prefect keeps in memory for a server that does not answer: log lines and events. Its queues have no bound of their own.

A training that prints much, while its server is away for hours, would fill the memory of its process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect.logging import handlers
from prefect.settings import PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE, temporary_settings

__all__ = ["bounded_queues"]

# About 40 MB of log lines as people print them. Prefect takes up to 4 MB of them from the queue at a time.
MOST_LINES = 30_000
MOST_EVENTS = 10_000

_log = logging.getLogger("trainlib")


@contextmanager
def bounded_queues() -> Iterator[None]:
    """Within the block, what is too much for Prefect's queues is dropped. The terminal and MLflow are not affected."""
    if handlers._api_log_sink is None:  # Prefect's task runners with processes have their own
        handlers.set_api_log_sink(_sink)
    most = PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE.value() or MOST_EVENTS
    with temporary_settings({PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE: most}):
        yield


class _BoundedLogSink:
    """Hands log lines to Prefect's worker, as long as not too many wait there. Says so once, until they are fewer again."""

    def __init__(self) -> None:
        self._drops = False

    def __call__(self, line: dict[str, Any]) -> None:
        worker = handlers.APILogWorker.instance()
        waiting = worker._queue.qsize()  # for events there is a setting; for log lines, nothing else tells
        if waiting < MOST_LINES:
            worker.send(line)
        elif not self._drops:
            self._drops = True
            _log.warning(
                "%s log lines wait for the Prefect server, which does not take them. Further lines are not shown in Prefect.",
                f"{waiting:,}",
            )
        if waiting < MOST_LINES // 2:
            self._drops = False


_sink = _BoundedLogSink()
