"""What a process holds: memory, threads, open files and sockets."""

from __future__ import annotations

import ctypes
import gc
import threading
from dataclasses import dataclass
from typing import Self

import psutil


@dataclass(frozen=True)
class Footprint:
    """What this process holds at one moment."""

    megabytes: float
    threads: int
    files: int
    """Regular files, pipes and sockets."""
    sockets: int
    names: tuple[str, ...]
    """What Python calls the threads."""

    @classmethod
    def now(cls) -> Footprint:
        """After what nobody refers to is given back: what counts is what is kept."""
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        process = psutil.Process()
        return cls(
            megabytes=process.memory_info().rss / 1e6,
            threads=process.num_threads(),
            files=process.num_fds(),
            sockets=len(process.net_connections("all")),
            names=tuple(sorted(thread.name for thread in threading.enumerate())),
        )

    def assert_flat(self, later: Footprint, megabytes: float) -> None:
        """Hardly anything has been added since; ``megabytes`` is how much memory may have been."""
        grown = f"\n{self}\n{later}"
        assert later.megabytes - self.megabytes <= megabytes, grown
        # A pool or a server may have one more at one moment than at another.
        assert later.threads - self.threads <= 3, grown
        assert later.files - self.files <= 5, grown
        assert later.sockets - self.sockets <= 3, grown


class Peak:
    """The most memory that this process has at any moment of a block, looked at twice a second."""

    megabytes = 0.0

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._over.wait(0.5):
            self.megabytes = max(self.megabytes, process.memory_info().rss / 1e6)
