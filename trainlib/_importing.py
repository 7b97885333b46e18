"""Importing large packages when they are needed, in as little time as that takes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collect_as_usual", "without_collecting"]

_is_frozen = False
"""Whether objects are kept from the garbage collector here, and not by the user."""


@contextmanager
def without_collecting() -> Iterator[None]:
    """Import within the block. Nothing of what is imported is garbage, and looking for some takes a fifth of the time.

    What was imported is not looked through afterwards either, until :func:`collect_as_usual` is called: most collections
    would come right after the import, while somebody waits for a training to start.
    """
    global _is_frozen
    known = len(sys.modules)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if len(sys.modules) > known and (_is_frozen or gc.get_freeze_count() == 0):
                gc.freeze()
                _is_frozen = True
            gc.enable()


def collect_as_usual() -> None:
    """Let the garbage collector look at all objects again: some that the user had before an import may be garbage by now."""
    global _is_frozen
    if _is_frozen:
        _is_frozen = False
        gc.unfreeze()
