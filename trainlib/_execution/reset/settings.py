"""The settings of a process that the standard library and the system keep for all of its code."""

from __future__ import annotations

import gc
import locale
import multiprocessing
import os
import resource
import socket
import sys
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Settings"]

_LIMITS = {
    name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"
}


@dataclass(frozen=True)
class Settings:
    """The settings at one moment."""

    timeout: float | None
    recursion: int
    switch_interval: float
    umask: int
    collects_garbage: bool
    collection_thresholds: Any
    start_method: str | None
    locale: str
    limits: dict[str, tuple[int, int]]
    """Of the system, by name: the soft and the hard one."""

    @classmethod
    def now(cls) -> Self:
        """Those that hold at present."""
        return cls(
            timeout=socket.getdefaulttimeout(),
            recursion=sys.getrecursionlimit(),
            switch_interval=sys.getswitchinterval(),
            umask=_umask(),
            collects_garbage=gc.isenabled(),
            collection_thresholds=gc.get_threshold(),
            start_method=multiprocessing.get_start_method(allow_none=True),
            locale=locale.setlocale(locale.LC_ALL),
            limits={name: resource.getrlimit(number) for name, number in _LIMITS.items()},
        )

    def restore(self) -> str | None:
        """Let them hold again. Returns None, or what prevents it."""
        socket.setdefaulttimeout(self.timeout)
        sys.setrecursionlimit(self.recursion)
        sys.setswitchinterval(self.switch_interval)
        os.umask(self.umask)
        gc.enable() if self.collects_garbage else gc.disable()
        gc.set_threshold(*self.collection_thresholds)
        if multiprocessing.get_start_method(allow_none=True) != self.start_method:
            multiprocessing.set_start_method(self.start_method, force=True)
        if locale.setlocale(locale.LC_ALL) != self.locale:
            locale.setlocale(locale.LC_ALL, self.locale)
        return self._restore_limits()

    def _restore_limits(self) -> str | None:
        for name, before in self.limits.items():
            if resource.getrlimit(_LIMITS[name]) == before:
                continue
            try:
                resource.setrlimit(_LIMITS[name], before)
            except (OSError, ValueError):
                return f"{name} was lowered for good"
        return None


def _umask() -> int:
    """It can be read only by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
