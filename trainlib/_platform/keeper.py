"""The process around a service: ``python keeper.py COMMAND [ARGUMENT ...]``.

It ends the service, and all that the service has started, when its standard input closes or on SIGTERM. Whoever starts a
keeper holds the other end of its standard input, so that nothing is left however that process ends.

The keeper is a child subreaper: a process whose parent has ended becomes the keeper's child, and so is found as well. If the
keeper itself is killed, the service gets SIGTERM from the kernel, and its standard input closes.

It tells the pid of the service on its standard output. What the service prints goes to the standard error of both.
It imports nothing of trainlib, since there is one such process for each service, and it has to start at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

# How long a service has to end by itself, and then what it has left running.
END_S = 10.0

_LOOK_S = 0.05
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STDERR = 2


def main(command: list[str]) -> int:
    """Run a command, and return its exit code when nothing of it is left."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)  # the wake-up tells
    parent = os.getpid()
    service = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=_STDERR, preexec_fn=lambda: _end_with_parent(parent)
    )
    print(service.pid, flush=True)
    while service.poll() is None and not _is_told_to_end(woken):
        _reap(service.pid)
    _end(service)
    return service.returncode if service.returncode >= 0 else 128 - service.returncode


def _is_told_to_end(woken: int) -> bool:
    """Wait until something happens, and say whether it means that the service is to be ended."""
    ready, _, _ = select.select([sys.stdin.fileno(), woken], [], [])
    if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1024):
        return True
    return woken in ready and any(number != signal.SIGCHLD for number in os.read(woken, 1024))


def _end(service: subprocess.Popen[bytes]) -> None:
    assert service.stdin is not None
    service.stdin.close()
    if service.poll() is None:
        service.terminate()  # alone: it knows best in which order its own processes end
        _wait(service, lambda: service.poll() is not None)
    for name in ("terminate", "kill"):
        for process in _descendants():
            try:
                getattr(process, name)()
            except psutil.NoSuchProcess:
                continue
        _wait(service, lambda: service.poll() is not None and not _descendants())
    _reap(service.pid)


def _wait(service: subprocess.Popen[bytes], is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + END_S
    while not is_over() and time.monotonic() < deadline:
        _reap(service.pid)
        time.sleep(_LOOK_S)


def _descendants() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def _reap(service: int) -> None:
    """Let go of processes that became this one's children and have ended. The service's own end is seen by its ``poll``."""
    for process in psutil.Process().children():
        try:
            if process.pid != service and process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)
        except (psutil.NoSuchProcess, ChildProcessError):
            continue


def _end_with_parent(parent: int) -> None:
    """Runs in the new process: let the kernel end it when its parent is gone, also if that has happened already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
