"""The line that urllib3 logs for each try that a server did not answer.

While MLflow is away, its client tries again and again. One line of ours says so. urllib3's lines would bury it in the terminal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_retry_lines"]

_logger = logging.getLogger("urllib3.connectionpool")
_thread = threading.local()


@contextmanager
def without_retry_lines() -> Iterator[None]:
    """Within the block, what this thread calls logs no such lines. Other threads, and all other lines, are not affected."""
    _logger.addFilter(_is_wanted)  # which does nothing the second time
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1


def _is_wanted(record: logging.LogRecord) -> bool:
    return getattr(_thread, "depth", 0) == 0 or not str(record.msg).startswith("Retrying (")
