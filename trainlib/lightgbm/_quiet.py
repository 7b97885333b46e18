"""Keeps LightGBM's compiled part from writing errors to the terminal. It prints each before it returns it, whoever listens to its log."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

__all__ = ["no_errors_printed"]

_one_at_a_time = threading.Lock()


@contextmanager
def no_errors_printed() -> Iterator[None]:
    """C's ``stderr`` leads nowhere. What Python writes to ``sys.stderr`` is not affected, which has its own way to the terminal.

    It is a variable that may be set in glibc only. Elsewhere, nothing is changed.
    """
    nowhere = _nowhere()
    if nowhere is None:
        yield
        return
    stderr = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stderr")
    with _one_at_a_time:
        before = stderr.value
        stderr.value = nowhere
        try:
            yield
        finally:
            stderr.value = before


@cache
def _nowhere() -> int | None:
    """A file of C's that is never closed: another thread may be about to write to it."""
    if platform.libc_ver()[0] != "glibc":
        return None
    opened = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(("fopen", ctypes.CDLL(None)))
    file: int | None = opened(b"/dev/null", b"we")
    return file
