"""A real MLflow server that a test can kill, stop and start again on the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests import process_logs


class MlflowServer:
    """A tracking server with its database and its artifacts in one folder."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port or 0))
            self._port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self._port}"
        self._log = folder / "mlflow.log"
        process_logs.follow("the MLflow server that goes away", self._log)
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")},
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # seven processes that would only take time to start
        }
        options = {
            "--host": "127.0.0.1",
            "--port": str(self._port),
            "--workers": "1",
            "--backend-store-uri": f"sqlite:///{self._folder}/mlflow.db",
            "--default-artifact-root": str(self._folder / "artifacts"),
        }
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *(word for pair in options.items() for word in pair)],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=2).close()
                return
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, with the process that serves."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """Let it hang: it accepts connections, and answers nothing."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again, also what it was asked meanwhile."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)
