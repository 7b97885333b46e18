"""A package, or a module, whose names are imported when somebody asks for them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

__all__ = ["import_when_asked"]


def import_when_asked(package: str, homes: Mapping[str, str], modules: Mapping[str, str] | None = None) -> None:
    """Let a package, which calls this with its ``__name__``, import each of its names at its first use.

    Args:
        package: The package.
        homes: The module that each name comes from.
        modules: Names of modules, and which module each of them is.

    Example::

        import_when_asked(__name__, {"train": "trainlib.flows.train"})
    """
    module = sys.modules[package]
    module.__class__ = _LazyPackage
    module.__dict__["_homes"] = homes
    module.__dict__["_modules"] = modules or {}


class _LazyPackage(ModuleType):
    _homes: Mapping[str, str]
    _modules: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        value: Any
        if name in self._modules:
            value = importlib.import_module(self._modules[name])
        elif name in self._homes:
            value = getattr(importlib.import_module(self._homes[name]), name)
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore that Python binds a submodule to its package where that is the name of a function, too: ``flows.train``."""
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """By name, as other modules: a training function that uses one is sent to its workers."""
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes, *self._modules})
