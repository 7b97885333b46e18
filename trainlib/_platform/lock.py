"""One platform for each home: who holds it, also while it starts or ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from trainlib import _storage as storage
from trainlib._process import Process

__all__ = ["folder", "holder", "only_one"]


def folder() -> Path:
    """Where a platform keeps its state, its logs and its password."""
    return storage.home() / "platform"


@contextmanager
def only_one() -> Iterator[bool]:
    """Hold the platform of this home. Gives False if another process does. It is let go however this process ends."""
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(folder() / "up.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        _holder_file().write_text(str(Process.this()))
        yield True
    finally:
        _holder_file().unlink(missing_ok=True)
        lock.release()


def holder() -> Process | None:
    """The process on this machine that runs, starts or ends the platform of this home."""
    try:
        process = Process.parse(_holder_file().read_text())
    except (FileNotFoundError, ValueError):  # there is none, or it is being written now
        return None
    return process if process.is_here and not process.is_gone else None


def _holder_file() -> Path:
    return folder() / "up.process"
