"""Lightning, under either of its two names, and classes that become Lightning's when they are used."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self

__all__ = ["OfLightning", "lightning"]

_NAMES = ("lightning.pytorch", "pytorch_lightning")


def lightning() -> Any:
    """Lightning's package: the one that this process has imported already, if it has both.

    A Trainer of one takes no strategy of the other, though they are the same code.

    Raises:
        ImportError: none is installed.
    """
    installed = [name for name in _NAMES if find_spec(name.partition(".")[0]) is not None]
    for name in [name for name in installed if name in sys.modules] or installed:
        return importlib.import_module(name)
    raise ImportError("trainlib.lightning needs Lightning: pip install 'trainlib[lightning]'")


@cache
def _combined(kind: Any, package: str) -> Any:
    module, _, name = kind.extends.partition(":")
    base = getattr(importlib.import_module(f"{package}.{module}"), name)
    return type(kind.__name__, (kind, base), {"__module__": kind.__module__, "__doc__": kind.__doc__})


class OfLightning:
    """Becomes a subclass of one of Lightning's classes when it is created, and so imports Lightning only then."""

    extends: ClassVar[str]
    """Which of them, as ``module:class`` below Lightning's package."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        return super().__new__(_combined(cls, lightning().__name__))  # type: ignore[no-any-return, arg-type]
