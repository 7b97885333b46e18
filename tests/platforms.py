"""A platform for tests, as a user has one: ``trainlib up`` in a home of its own, on free ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import process_logs
from tests.longest import LONGEST_S
from trainlib._platform import commands, record
from trainlib._platform.record import Platform

__all__ = ["Up", "platform_of", "wait_for"]

_UP = "from trainlib._platform.commands import up; up(prefect_port={}, mlflow_port={}, detach=False, auth={})"


@dataclass
class Up:
    """A platform in a home of its own."""

    home: Path
    ports: tuple[int, int]
    auth: bool = False
    """Whether its servers ask for a password."""
    started: list[subprocess.Popen] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        settings = {
            "TRAINLIB_HOME": str(self.home),
            "PREFECT_HOME": str(self.home / "prefect"),
            "PYTHONPATH": os.pathsep.join([str(self.home), os.environ.get("PYTHONPATH", "")]),
        }
        without = ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "RAY_ADDRESS")
        return {**{name: value for name, value in os.environ.items() if name not in without}, **settings}

    def start(self) -> subprocess.Popen:
        """What a user does who types `trainlib up`. Does not wait."""
        log = self.home / f"up-{len(self.started)}.log"
        process_logs.follow(f"trainlib up {len(self.started)}", log)
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _UP.format(*self.ports, self.auth)],
                env=self.environment,
                cwd=self.home,
                stdout=output,
                stderr=output,
            )
        self.started.append(process)
        return process

    def output(self, process: subprocess.Popen) -> str:
        return (self.home / f"up-{self.started.index(process)}.log").read_text()

    def wait_until_up(self) -> Platform:
        wait_for(lambda: record.running() is not None or all(each.poll() is not None for each in self.started))
        platform = record.running()
        assert platform is not None, [self.output(each) for each in self.started]
        for name, log in commands.log_files().items():
            process_logs.follow(f"the platform's {name}", log)
        return platform

    @property
    def supervisor(self) -> subprocess.Popen:
        return next(each for each in self.started if each.poll() is None)


def wait_for(what: Callable[[], Any], timeout: float = LONGEST_S) -> None:
    """Wait for something. It is asked for seldom: most questions are answered by servers, which have better things to do."""
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline, f"waited {timeout} s"
        time.sleep(0.3)


@contextmanager
def platform_of(home: Path, *, auth: bool = False) -> Iterator[Up]:
    """A platform that can be started in a folder. This process is a script in that folder meanwhile; nothing of it is left."""
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        up = Up(home, (first.getsockname()[1], second.getsockname()[1]), auth)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TRAINLIB_HOME", "PREFECT_HOME"):
            patch.setenv(name, up.environment[name])
        patch.delenv("PREFECT_API_URL", raising=False)
        try:
            yield up
        finally:
            for each in up.started:
                each.kill()  # what it has started ends after it
                each.wait()
