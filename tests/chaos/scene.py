"""What trainings run on here: an MLflow server, a Prefect server and a Ray, each of which a fault may end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import process_logs
from tests.integration.mlflow_server import MlflowServer
from trainlib.flows._embedded import answers

START_S = 120.0


def free_port() -> int:
    """A port that nobody listens on. It is none of those that the kernel gives to connections: while a server is away,
    nobody else gets its port."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            return port


class PrefectServer:
    """A Prefect server that can be killed, stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.api = f"http://127.0.0.1:{self._port}/api"
        self._process: subprocess.Popen[bytes] | None = None
        process_logs.follow("the Prefect server of the chaos", folder / "prefect.log")

    def start(self) -> None:
        """Start it. Nobody waits until it answers."""
        environment = {**os.environ, "PREFECT_HOME": str(self._folder / "prefect")}
        environment.pop("PREFECT_API_URL", None)
        with open(self._folder / "prefect.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trainlib.flows._serve", str(self._port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while not answers(self.api):
            assert self._process.poll() is None, "the Prefect server ended"
            assert time.monotonic() < deadline, "the Prefect server does not answer"
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def unended(self) -> int:
        """How many flow runs look as if they still ran."""
        asked = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING", "SCHEDULED"]}}}}
        request = urllib.request.Request(
            f"{self.api}/flow_runs/count", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.load(answer))


class Ray:
    """The process with the Ray cluster, see :mod:`tests.chaos.ray_cluster`."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._log = folder / "ray.log"
        process_logs.follow("the Ray of the chaos", self._log)

    def start(self) -> None:
        """Start it, and wait until it is there."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.ray_cluster", str(self.port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._answer() == "ready"

    def ask(self, command: str) -> Any:
        """Have it do something, and wait for that."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        """End it, and all of its processes."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the Ray cluster ended:\n{self._log.read_text()}"
        return json.loads(line)


class Scene:
    """All three, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mlflow = MlflowServer(folder, free_port())
        self.prefect = PrefectServer(folder)
        self.ray = Ray(folder)

    @property
    def environment(self) -> dict[str, str]:
        """What a driver has to know of it."""
        ours = {
            "MLFLOW_TRACKING_URI": self.mlflow.uri,
            "PREFECT_API_URL": self.prefect.api,
            "RAY_ADDRESS": self.ray.address,
            "TRAINLIB_HOME": str(self.folder / "home"),
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PYTHONUNBUFFERED": "1",
        }
        return {**os.environ, **ours}


@contextlib.contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """A scene, for as long as the block runs."""
    made = Scene(folder)
    try:
        made.prefect.start()
        with ThreadPoolExecutor() as threads:
            for started in [threads.submit(made.ray.start), threads.submit(made.mlflow.start)]:
                started.result()
        made.prefect.wait()
        yield made
    finally:
        made.ray.stop()
        made.mlflow.kill()
        made.prefect.kill()
