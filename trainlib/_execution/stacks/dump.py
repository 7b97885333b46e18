"""Reads the stacks of a process that lets no Python run, such as one that waits in C code and keeps Python's lock.

The process prepares for that: on a signal, Python's faulthandler writes its stacks into a file in memory, without asking
for the lock. That file has no name. It is reached through the process, and by the same user only. It ends with the process.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import signal
import time
from pathlib import Path

import psutil

from trainlib._execution.stacks.frames import ProcessStacks, parse_dump

_FILE = "trainlib-stacks"
_ANSWER_S = 2.0
# What is written grows by and by. It is complete if it has not grown for so long.
_SETTLED_S = 0.1
_POLL_S = 0.02


def _signal() -> int | None:
    """A signal that nothing else uses. Only Linux has one, and files in memory."""
    return signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") and hasattr(os, "memfd_create") else None


def prepare() -> None:
    """Make this process write its stacks when it gets the signal."""
    if (number := _signal()) is not None:
        file = os.memfd_create(_FILE)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # so that whoever reads it may empty it
        faulthandler.register(number, file=file, all_threads=True)


def dump(pid: int) -> ProcessStacks:
    """The stacks of another process of this machine, which has called :func:`prepare`."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
            return ProcessStacks(problem="its process is stopped (SIGSTOP)")
        number, file = _signal(), _file_of(pid)
        if number is None or file is None or not _handles(pid, number):  # the signal would end it
            return ProcessStacks(problem="its process does not answer, and cannot be inspected from outside")
        os.truncate(file, 0)
        os.kill(pid, number)
        text = _settled_text(file)
    except (OSError, psutil.Error) as error:
        return ProcessStacks(problem=f"its process cannot be inspected: {error}")
    return parse_dump(text) if text else ProcessStacks(problem=f"its process wrote no stacks within {_ANSWER_S:g} s")


def _file_of(pid: int) -> Path | None:
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(file).startswith(f"/memfd:{_FILE} "):
                return file
        except FileNotFoundError:
            continue  # closed meanwhile
    return None


def _handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _settled_text(file: Path) -> str:
    """What is in a file once it no longer grows. Empty if nothing comes in time."""
    deadline = time.monotonic() + _ANSWER_S
    size, since = 0, time.monotonic()
    while (now := time.monotonic()) < deadline and (size == 0 or now - since < _SETTLED_S):
        time.sleep(_POLL_S)
        if (grown := file.stat().st_size) != size:
            size, since = grown, time.monotonic()
    return file.read_text(errors="replace")
