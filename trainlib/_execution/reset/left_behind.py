"""What a script has left behind in a worker that was reset, and that no other script may find.

The next trial of the same script may have such a worker, another script may not: libraries keep options, credentials and
caches, and nobody can know how to reset them all.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, Self

from trainlib._execution.reset.loaded import is_of_a_library, libraries_beyond

__all__ = ["Handover"]

_CODE = (FunctionType, BuiltinFunctionType, type)


@dataclass(frozen=True)
class Handover:
    """A worker as it is when it is new."""

    modules: frozenset[str]
    code: dict[str, dict[str, Any]]
    """The functions and classes of all modules, by name."""
    files: frozenset[str]
    brought: tuple[str, ...]
    """Libraries that the framework loads by itself when it needs them: ``BROUGHT`` of its state module."""
    replaced: tuple[str, ...]
    """Functions that the framework itself replaces then: ``REPLACED`` of its state module."""

    @classmethod
    def now(cls, state_module: str | None) -> Self:
        """The present state of this process."""
        state: Any = importlib.import_module(state_module) if state_module else None
        return cls(
            frozenset(sys.modules),
            {name: _code(module) for name, module in list(sys.modules.items())},
            frozenset(_open_files()),
            getattr(state, "BROUGHT", ()),
            getattr(state, "REPLACED", ()),
        )

    def left_behind(self) -> tuple[str, ...]:
        """What is different in this process, which has been reset, from a new one."""
        libraries = (f"the library {name}" for name in libraries_beyond(self.modules, self.brought))
        files = (f"the open file {path}" for path in _open_files() if path not in self.files)
        return (*libraries, *self._replaced(), *files)

    def _replaced(self) -> Iterator[str]:
        """Functions and classes that somebody has put others in the place of."""
        for name, before in self.code.items():
            module = sys.modules.get(name)
            now = vars(module) if module is not None and hasattr(module, "__dict__") else {}
            for attribute, value in before.items():
                if now.get(attribute) is not value and f"{name}.{attribute}" not in self.replaced:
                    yield f"another {name}.{attribute}"


def _code(module: Any) -> dict[str, Any]:
    # By its type alone: some libraries warn, or load more of themselves, when an object is asked for its class.
    attributes = list(getattr(module, "__dict__", {}).items())
    return {name: value for name, value in attributes if issubclass(type(value), _CODE)}


def _open_files() -> Iterator[str]:
    """The ordinary files that this process has open."""
    try:
        numbers = os.listdir("/proc/self/fd")
    except FileNotFoundError:
        return  # another system
    for number in numbers:
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue  # closed meanwhile: the folder itself
        if _is_ordinary(path) and not is_of_a_library(path):
            yield path


def _is_ordinary(path: str) -> bool:
    is_special = path.startswith(("/dev/", "/proc/", "/sys/", "/memfd:")) or path.endswith(" (deleted)")
    return path.startswith("/") and not is_special
