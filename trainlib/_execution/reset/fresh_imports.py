"""Imports of the user's own modules that always see the source as it is now.

Python takes compiled code from ``__pycache__`` when the source has the size and the second of its last change that were noted
there. A module that is edited twice within a second, without a change of its size, is then imported as it was before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import cache_from_source
from typing import Any

from trainlib._execution.reset.loaded import is_of_a_library

__all__ = ["install", "may_be_stale"]

# Some file systems note times to the second, or to two.
_AT_ONCE_S = 2.0


class _Loader(SourceFileLoader):
    """Compiles a source anew if its compiled code is not known to be of the same source."""

    def path_stats(self, path: Any) -> Any:
        if may_be_stale(path):
            raise OSError("not to be taken from the cache")  # which is how a loader says so
        return super().path_stats(path)


def may_be_stale(source: str) -> bool:
    """Whether a source may have been changed after it was compiled, without a trace: it was compiled right after it was
    written."""
    try:
        return os.stat(cache_from_source(source)).st_mtime - os.stat(source).st_mtime < _AT_ONCE_S
    except OSError:
        return False  # not compiled yet


def install() -> None:
    """From now on, import modules that do not belong to a library in this way."""
    finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Loader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)
    )
    sys.path_hooks.insert(0, _outside_libraries(finder))
    sys.path_importer_cache.clear()


def _outside_libraries(finder: Callable[[str], Any]) -> Callable[[str], Any]:
    def hook(path: str) -> Any:
        if is_of_a_library(path):
            raise ImportError  # which is how a hook passes it on to the next one
        return finder(path)

    return hook
