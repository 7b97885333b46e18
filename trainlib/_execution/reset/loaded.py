"""The modules that a process has loaded: which are the user's own, and which came with libraries."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Collection
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType

__all__ = ["forget_users_modules", "is_of_a_library", "is_third_party", "is_users", "libraries_beyond"]

_LIBRARIES = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
# They hold no state of the user's, wherever they are installed.
_OURS = ("ray", "trainlib")


def is_of_a_library(path: str) -> bool:
    """Whether a file or folder lies where libraries are installed."""
    return os.path.join(path, "").startswith(_LIBRARIES)


def forget_users_modules(before: Collection[str]) -> str | None:
    """Unload the user's own modules, except those that were there ``before``. Returns None, or what prevents it.

    Their globals must not reach the next training function, and an edited file has to be read again.
    """
    users = [name for name in list(sys.modules) if name not in before and is_users(name)]
    for name in users:
        files = _files(sys.modules[name])
        if any(file.endswith(tuple(EXTENSION_SUFFIXES)) for file in files):
            return f"the compiled module {name} cannot be loaded twice in one process"
        if any(map(is_of_a_library, files)):
            return f"the package {name} belongs to a library, too, which cannot be loaded twice in one process"
    for name in users:
        del sys.modules[name]
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and vars(sys.modules[parent]).get(child) is not None:
            delattr(sys.modules[parent], child)
    return None


def libraries_beyond(before: Collection[str], brought: Collection[str] = ()) -> tuple[str, ...]:
    """The libraries that were loaded since, by name. Python's own are not counted, nor those that are ``brought`` along."""
    known = {name.partition(".")[0] for name in before} | {*brought, *_OURS}
    names = {name.partition(".")[0] for name in list(sys.modules) if name not in before} - known
    return tuple(sorted(name for name in names if is_third_party(name)))


def is_users(name: str) -> bool:
    """Whether a module is the user's own, rather than part of Python or of an installed library."""
    module, top = sys.modules[name], name.partition(".")[0]
    if name == "__main__" or top in _OURS or top in sys.stdlib_module_names or top.startswith("_cython_"):
        return False
    files = _files(module)
    if files:
        return not all(map(is_of_a_library, files))
    # It was made by code, and belongs to whoever made its package.
    return top == name or top not in sys.modules or is_users(top)


def is_third_party(top: str) -> bool:
    """Whether a package of that name was loaded, and is an installed library."""
    module = sys.modules.get(top)
    return module is not None and top not in sys.stdlib_module_names and any(map(is_of_a_library, _files(module)))


def _files(module: ModuleType) -> list[str]:
    """The file of a module, or the folders of a package without one; empty if code has made it."""
    file = getattr(module, "__file__", None)
    if file and os.path.isabs(file):  # code that makes a module may write anything there: that of torch.ops is _ops.py
        return [str(file)]
    return [str(path) for path in getattr(module, "__path__", None) or ()]
