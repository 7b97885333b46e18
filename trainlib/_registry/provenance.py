"""Where a training came from: who started which code, in which process."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trainlib._registry import tags


@dataclass(frozen=True)
class Driver:
    """The process that coordinates a training. Another process can find out whether it still runs."""

    host: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Driver:
        """The present process."""
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()) or "")

    @classmethod
    def parse(cls, text: str) -> Driver:
        """The process that a tag of a run names."""
        host, pid, started = text.rsplit(":", 2)
        return cls(host, int(pid), started)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.started}"

    def is_gone(self) -> bool:
        """Whether it has ended. For a process on another machine the answer is no: it cannot be known from here."""
        return self.host == socket.gethostname() and _started(self.pid) != self.started


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


def source_tags() -> dict[str, str]:
    """MLflow's own tags for user and source, which its client does not set by itself."""
    found = {
        tags.MLFLOW_USER: _user(),
        tags.MLFLOW_SOURCE_NAME: os.path.abspath(sys.argv[0]) if sys.argv[0] else "python",
        tags.MLFLOW_SOURCE_TYPE: "LOCAL",
    }
    if commit := _git_commit():
        found[tags.MLFLOW_GIT_COMMIT] = commit
    return found


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return str(os.getuid())


def _git_commit() -> str | None:
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
