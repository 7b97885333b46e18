"""Resets a worker process to the state it had before it ran a training function, so that another one can use it.

A process that cannot be reset is found out, and not used again.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import random
import signal
import sys
import sysconfig
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


@dataclass
class ProcessState:
    """A process as it was before any user's code ran in it."""

    environment: dict[str, str]
    directory: str
    path: list[str]
    arguments: list[str]
    modules: set[str]
    threads: set[int]
    handlers: list[logging.Handler]
    level: int
    filters: list[Any]
    signals: dict[int, Any]
    framework: Any


def snapshot(state_module: str | None) -> ProcessState:
    """The present state of this process."""
    framework = importlib.import_module(state_module).snapshot() if state_module else None
    gc.collect()
    gc.freeze()  # what exists now stays, so later collections can skip it
    root = logging.getLogger()
    return ProcessState(
        environment=dict(os.environ),
        directory=os.getcwd(),
        path=list(sys.path),
        arguments=list(sys.argv),
        modules=set(sys.modules),
        threads={thread.ident for thread in threading.enumerate() if thread.ident},
        handlers=list(root.handlers),
        level=root.level,
        filters=list(warnings.filters),
        signals={number: signal.getsignal(number) for number in _SIGNALS},
        framework=framework,
    )


def restore(state: ProcessState, state_module: str | None) -> str | None:
    """Reset this process to ``state``. Returns None, or what prevents it."""
    if threads := [t.name for t in threading.enumerate() if t.ident not in state.threads and not _is_rays(t)]:
        return f"threads are still running: {', '.join(sorted(threads))}"
    if children := _children():
        return f"child processes are still running: {children}"
    if changed := [n for n, handler in state.signals.items() if signal.getsignal(n) is not handler]:
        return f"signal handlers were changed: {changed}"  # only the main thread could set them back
    if state_module and (problem := importlib.import_module(state_module).restore(state.framework)):
        return str(problem)
    os.environ.clear()
    os.environ.update(state.environment)
    os.chdir(state.directory)
    sys.path[:] = state.path
    sys.argv[:] = state.arguments
    root = logging.getLogger()
    root.handlers[:] = state.handlers
    root.setLevel(state.level)
    warnings.filters[:] = state.filters  # type: ignore[index]
    for name in [name for name, module in sys.modules.items() if name not in state.modules and _is_users(module)]:
        del sys.modules[name]  # its globals must not reach the next training function
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    gc.collect()
    return None


_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own, rather than an installed library."""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__" or module.__name__.partition(".")[0] in ("trainlib", "ray"):
        return False
    return bool(file) and not str(file).startswith(_LIBRARIES) and str(file).endswith(".py")


def _is_rays(thread: threading.Thread) -> bool:
    """Whether a thread belongs to Ray, whose executors start and end threads at any time."""
    return isinstance(thread, threading._DummyThread) or thread.name.startswith("ray")


def _children() -> list[int]:
    """The pids of child processes. Only Linux has a cheap way to list them."""
    children: list[int] = []
    for tasks in Path("/proc/self/task").glob("*/children"):
        try:
            children += [int(pid) for pid in tasks.read_text().split()]
        except OSError:
            continue  # the thread has ended meanwhile
    return children
