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
from tests.longest import LONGEST_S
from trainlib._registry.client import connect
from trainlib._registry.store import TrackingStore

# What `mlflow server` starts, once it has imported all of MLflow and brought the database up to date: that takes as long again.
_SERVES = (sys.executable, "-m", "uvicorn", "mlflow.server.fastapi_app:app", "--host", "127.0.0.1")


class MlflowServer:
    """A tracking server with its database and its artifacts in one folder.

    Args:
        folder: That folder.
        port: Where it listens. Default: any free port.
        workers: How many processes serve.
        keeps_artifacts: Whether artifacts are reached through the server only.
    """

    def __init__(
        self, folder: Path, port: int | None = None, *, workers: int = 1, keeps_artifacts: bool = False
    ) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port or 0))
            self._port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self._port}"
        self._log = folder / "mlflow.log"
        process_logs.follow(f"the MLflow server in {folder.name}", self._log)
        self._process: subprocess.Popen | None = None
        self._workers = workers
        artifacts = str(folder / "artifacts")
        self._settings = {
            "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{folder}/mlflow.db",
            "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/" if keeps_artifacts else artifacts,
            "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
            **({"_MLFLOW_SERVER_ARTIFACT_DESTINATION": artifacts} if keeps_artifacts else {}),
            "_MLFLOW_SGI_NAME": "uvicorn",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if not (self._folder / "mlflow.db").exists():
            connect(
                TrackingStore(self._settings["_MLFLOW_SERVER_FILE_STORE"])
            )  # from a template: quicker than by the server
        others = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [*_SERVES, "--port", str(self._port), "--workers", str(self._workers)],
                stdout=log,
                stderr=log,
                env={**others, **self._settings},
                cwd=self._folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + LONGEST_S
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
