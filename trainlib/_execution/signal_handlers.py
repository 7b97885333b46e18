"""Signal handlers that a library must not replace.

Python's own functions can set a handler only in the main thread, and do not see one that a library has set in C.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["kept"]

# More than the system's structure has on any platform.
_SIZE_OF_SIGACTION = 512


@contextmanager
def kept(number: int) -> Iterator[None]:
    """Put a signal's handler back after the block, whichever thread it runs in."""
    sigaction = ctypes.CDLL(None).sigaction
    before = ctypes.create_string_buffer(_SIZE_OF_SIGACTION)
    sigaction(number, None, before)
    try:
        yield
    finally:
        sigaction(number, before, None)
