"""A platform that consists of a Ray alone, and scripts that join it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests import process_logs
from tests.longest import LONGEST_S
from trainlib import __version__
from trainlib._platform import record
from trainlib._process import Process
from trainlib._registry.store import current_store

# Uses a worker as an attempt does, without Prefect and MLflow.
PRELUDE = """
import json, os, sys, time
import cloudpickle, ray
from trainlib import ScalingConfig
from trainlib._execution import cluster
from trainlib._execution.backend import BackendConfig
from trainlib._execution.pool.choosing import kind_of, pool_of

cluster.connect()
kind = kind_of(ScalingConfig(num_workers=1), BackendConfig(), ray.get_runtime_context().get_node_id())
pool = pool_of(kind)

def run(worker, function):
    return ray.get(worker.execute.remote(cloudpickle.dumps(function)))

def say(**what):
    print(json.dumps(what), flush=True)
"""


class PlatformRay:
    """The process that holds the platform's Ray, and the record by which scripts find it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.home.mkdir()
        log = home / "head.log"
        process_logs.follow("the platform's Ray", log)
        with open(log, "wb") as output:
            self.head = subprocess.Popen(
                [sys.executable, "-m", "trainlib._execution.head"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=home,
                env=self.environment,
                start_new_session=True,
            )
        self.address = ""
        self.processes: list[psutil.Process] = []

    @property
    def environment(self) -> dict[str, str]:
        """That of scripts in this home. They are recorded by the session's MLflow and Prefect."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RAY_ADDRESS", "RAY_AUTH", "MAKE"))
        }
        return {**kept, "TRAINLIB_HOME": str(self.home), "MLFLOW_TRACKING_URI": current_store().uri}

    def wait_until_up(self) -> None:
        """Wait until scripts can join, and let them find it."""
        assert self.head.stdout is not None
        line = self.head.stdout.readline()
        assert line, "the process that holds the platform's Ray ended early"
        self.address = json.loads(line)["ray"]
        self.processes = psutil.Process(self.head.pid).children(recursive=True)
        platform = record.Platform(str(Process.of(self.head.pid)), "", "", self.address, version=__version__)
        file = self.home / "platform" / "platform.json"
        file.parent.mkdir()
        file.write_text(json.dumps(vars(platform)))

    def running(self) -> list[psutil.Process]:
        """What still runs of Ray and the workers. Ray's agents notice that their raylet is gone, but then wait a minute for its GCS;
        whoever keeps the process that holds a Ray ends them."""
        return [process for process in self.processes if _runs(process) and "Agent" not in process.name()]

    def end(self) -> None:
        """Make sure that it has ended."""
        assert self.head.stdin is not None
        if not self.head.stdin.closed:
            self.head.stdin.close()
        self.head.wait(30)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Scripts:
    """Starts scripts in a platform's home, each in a folder that may have other modules."""

    def __init__(self, platform: PlatformRay, folder: Path) -> None:
        self._platform = platform
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self, source: str, folder: str = "project", prelude: str = PRELUDE, **environment: str
    ) -> subprocess.Popen[str]:
        """Start a script. What it prints is read from its ``stdout``."""
        project = self._folder / folder
        project.mkdir(exist_ok=True)
        script = project / f"script_{len(self._started)}.py"
        script.write_text(prelude + textwrap.dedent(source))
        log = script.with_suffix(".log")
        process_logs.follow(f"the script {script.name}", log)
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                [sys.executable, str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=project,
                env={**self._platform.environment, **environment},
            )
        self._started.append(process)
        return process

    def run(self, source: str, **arguments: str) -> dict:
        """Run a script. Gives what it has said last."""
        process = self.start(source, **arguments)
        output, _ = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, output
        return json.loads(output.splitlines()[-1])

    def kill_all(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()


def said(process: subprocess.Popen[str]) -> dict:
    """What a script says next."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def until(what: Callable[[], bool], timeout: float) -> float:
    """Wait for something. Gives how long it took."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < timeout, f"waited {timeout} s"
        time.sleep(0.02)
    return time.monotonic() - began
