"""The compiled part of a library of boosted trees. Loading it takes milliseconds, and importing the package more than a second."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["native_library"]


def native_library(package: str, name: str) -> ctypes.CDLL | None:
    """The compiled library of an installed package, without importing the package. None if it is not found, or cannot be loaded.

    Args:
        package: The package, e.g. ``xgboost``.
        name: The file's name without its ending, e.g. ``libxgboost``.
    """
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    # Conda keeps it beside all other libraries.
    folders = (Path(found.origin).parent / "lib", Path(sys.prefix) / "lib", Path(sys.base_prefix) / "lib")
    for file in (folder / f"{name}.{ending}" for folder in folders for ending in ("so", "dylib", "dll")):
        if file.exists():
            try:
                return ctypes.CDLL(str(file))
            except OSError:
                return None
    return None
