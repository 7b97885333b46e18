"""Telling processes apart, also those whose pid another one has by now."""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Process"]


@dataclass(frozen=True)
class Process:
    """A process, such as the one that coordinates a training. Others on its machine can tell whether it still lives."""

    host: str
    pid: int
    started: str
    machine: str = ""
    """Tells machines and containers of one host name apart. Empty if an older trainlib wrote it."""

    @classmethod
    def this(cls) -> Process:
        """The present process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Process:
        """A process of this machine, by its pid. One that has ended is gone from the beginning."""
        started = _started(pid)
        return cls(socket.gethostname(), pid, "ended" if started is None else started, _machine())

    @classmethod
    def parse(cls, text: str) -> Process:
        """A process, from its text. What follows a blank is not part of it.

        Example:
            >>> Process.parse("node-1:7:1234@ab12 nonce")
            Process(host='node-1', pid=7, started='1234', machine='ab12')
            >>> Process.parse("node-1:7:1234").machine
            ''
        """
        process, _, machine = text.split(" ")[0].partition("@")
        host, pid, started = process.rsplit(":", 2)
        return cls(host, int(pid), started, machine)

    def __str__(self) -> str:
        machine = f"@{self.machine}" if self.machine else ""
        return f"{self.host}:{self.pid}:{self.started}{machine}"

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, where this process can see its pid."""
        return self.host == socket.gethostname() and self.machine in ("", _machine())

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended. A process of another machine is not known to have."""
        return self.is_here and _started(self.pid) != self.started


@cache
def _machine() -> str:
    """The same for processes that see each other's pids: one boot of one kernel, and one namespace of pids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:8]


def _started(pid: int) -> str | None:
    """When a process was started; None if it has ended. Pids are used again, but not with the same start."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state == "Z" else rest[18]
    except FileNotFoundError:
        return None if Path("/proc/self").exists() else _exists(pid)


def _exists(pid: int) -> str | None:
    """Whether there is such a process, which is all that can be known without /proc: None if there is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
