"""What a script waits for before its first line: importing a library, and then a framework's trainer from it."""

import importlib
import time

from bench.scripts.side import finish


def time_imports(library: str, trainer: str) -> None:
    """Import both, and write down how long each took from the start."""
    started = time.perf_counter()
    importlib.import_module(library)
    imported = time.perf_counter()
    importlib.import_module(trainer)
    finish(import_s=imported - started, import_torch_s=time.perf_counter() - started)
