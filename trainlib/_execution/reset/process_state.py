"""Resets a worker process to the state it had before it ran a training function, so that another one can use it.

A process that cannot be reset is found out, and not used again. What the state of a library is cannot be known: see
:mod:`~trainlib._execution.reset.left_behind` for what keeps a worker from being handed on to another script.
"""

from __future__ import annotations

import gc
import importlib
import linecache
import os
import random
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from trainlib._execution.reset.exit_handlers import drop_users_handlers, watch_handlers
from trainlib._execution.reset.loaded import forget_users_modules, is_of_a_library
from trainlib._execution.reset.logging_state import LoggingState
from trainlib._execution.reset.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


@dataclass
class ProcessState:
    """A process as it was before any user's code ran in it."""

    environment: dict[str, str]
    directory: str
    path: list[str]
    finders: tuple[list[Any], list[Any]]
    arguments: list[str]
    modules: dict[str, ModuleType]
    main: dict[str, Any]
    threads: set[int]
    logging: LoggingState
    filters: list[Any]
    signals: dict[int, Any]
    hooks: tuple[Any, Any, Any]
    settings: Settings
    framework: Any


def snapshot(state_module: str | None) -> ProcessState:
    """The present state of this process."""
    framework = importlib.import_module(state_module).snapshot() if state_module else None
    watch_handlers()
    # What exists now stays, so collections can skip it. Nor is it searched for garbage first: TensorFlow's objects take a second.
    gc.freeze()
    return ProcessState(
        environment=dict(os.environ),
        directory=os.getcwd(),
        path=list(sys.path),
        finders=(list(sys.meta_path), list(sys.path_hooks)),
        arguments=list(sys.argv),
        modules=dict(sys.modules),
        main=dict(vars(sys.modules["__main__"])),
        threads={thread.ident for thread in threading.enumerate() if thread.ident},
        logging=LoggingState.now(),
        filters=list(warnings.filters),
        signals={number: signal.getsignal(number) for number in _SIGNALS},
        hooks=(sys.excepthook, sys.unraisablehook, threading.excepthook),
        settings=Settings.now(),
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
    state.logging.restore(state.modules)
    drop_users_handlers()
    if problem := forget_users_modules(state.modules):
        return problem
    _restore_environment(state)
    _restore_imports(state)
    _restore_hooks(state)
    if problem := state.settings.restore():
        return problem
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    gc.collect()
    return None


def _restore_environment(state: ProcessState) -> None:
    has_moved = os.environ.get("TZ") != state.environment.get("TZ")
    os.environ.clear()
    os.environ.update(state.environment)
    if has_moved:
        time.tzset()
    os.chdir(state.directory)


def _restore_imports(state: ProcessState) -> None:
    sys.modules.update(state.modules)  # also where somebody has put another one in its place
    sys.path[:] = state.path
    sys.meta_path[:], sys.path_hooks[:] = state.finders
    for path in [path for path in sys.path_importer_cache if not is_of_a_library(path)]:
        del sys.path_importer_cache[path]  # it remembers which files the folder has
    main = vars(sys.modules["__main__"])
    for name in main.keys() - state.main.keys():
        del main[name]
    main.update(state.main)
    linecache.clearcache()


def _restore_hooks(state: ProcessState) -> None:
    sys.argv[:] = state.arguments
    warnings.filters[:] = state.filters  # type: ignore[index]
    sys.excepthook, sys.unraisablehook, threading.excepthook = state.hooks
    threading.settrace(None)  # type: ignore[arg-type]
    threading.setprofile(None)


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
