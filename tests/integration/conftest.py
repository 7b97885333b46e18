"""What integration tests share: the registry as a user would read it, Prefect's states, and driver processes."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import ray
from mlflow import MlflowClient

from tests import process_logs
from tests.longest import LONGEST_S
from trainlib import _storage as storage
from trainlib._execution import cluster
from trainlib._registry.client import connect
from trainlib._registry.store import current_store


def _logs_of_the_session() -> Iterator[tuple[str, Path]]:
    """What the session's Prefect server and its Ray have written, by process."""
    yield "the session's Prefect server", storage.home() / "logs" / "prefect-server.log"
    if cluster.is_local():
        folder = Path(ray._private.worker._global_node.get_logs_dir_path())
        for log in sorted([*folder.glob("worker-*.err"), *folder.glob("worker-*.out")]):
            yield f"Ray's worker process {log.stem.rpartition('-')[2]} ({log.suffix[1:]})", log
        for name in ("raylet", "gcs_server"):
            yield f"Ray's {name}", folder / f"{name}.err"


process_logs.follow_all(_logs_of_the_session)


@pytest.fixture
def registry() -> MlflowClient:
    """MLflow, as the session's trainings record into it."""
    return connect(current_store())


@pytest.fixture
def curve(registry: MlflowClient) -> Callable[[str, str], list[tuple[int, float]]]:
    """A metric of a run as (iteration, value), in the order of recording."""

    def read(run_id: str, metric: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in registry.get_metric_history(run_id, metric)]

    return read


@pytest.fixture
def newest_run(registry: MlflowClient) -> Callable[[str], Any]:
    """The one MLflow run of a training's name; fails if there are several."""

    def find(name: str) -> Any:
        experiments = [experiment.experiment_id for experiment in registry.search_experiments()]
        runs = registry.search_runs(experiments, f"attributes.run_name = '{name}'")
        assert len(runs) == 1, [run.info.run_id for run in runs]
        return runs[0]

    return find


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training function that is stopped, and does not report any more, is ended soon: for tests of other things than that."""
    from trainlib._execution import conversation

    monkeypatch.setattr(conversation, "STOP_GRACE_S", 0.5)


@pytest.fixture
def flow_state() -> Callable[[str], str]:
    """The state type of a Prefect flow run, e.g. COMPLETED."""

    def read(flow_run_id: str) -> str:
        from uuid import UUID

        from prefect.client.orchestration import get_client

        from trainlib.flows import _embedded as embedded

        embedded.start()
        embedded.wait()
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(flow_run_id)).state
            assert state is not None
            return str(state.type.value)

    return read


@dataclass
class Webhook:
    """A server on loopback that keeps what is posted to it, and a notification block of Prefect for it."""

    block: str
    """As a setting names it."""
    posts: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    from trainlib.flows import _embedded as embedded

    received = Webhook("custom-webhook/tests")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    embedded.start()
    embedded.wait()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        CustomWebhookNotificationBlock(
            name="tests",
            url=f"http://127.0.0.1:{server.server_port}/secret-token",
            json_data={"subject": "{{subject}}", "body": "{{body}}"},
        ).save("tests", overwrite=True)
        yield received
        server.shutdown()


class Driver:
    """A user's script in a process of its own."""

    def __init__(self, script: Path, *args: str, env: dict[str, str]) -> None:
        self._output = script.with_suffix(".log")
        process_logs.follow(f"the driver {script.name}", self._output)
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(script), *args],
                stdout=output,
                stderr=output,
                env=env,
                cwd=script.parent,
                start_new_session=True,
                # Whoever runs the tests in the background makes them ignore Ctrl-C; a user's script does not.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, what: Callable[[], bool], timeout: float = LONGEST_S) -> None:
        deadline = time.monotonic() + timeout
        while not what():
            assert self.process.poll() is None, f"the driver ended early:\n{self.output}"
            assert time.monotonic() < deadline, f"waited {timeout} s:\n{self.output}"
            time.sleep(0.05)

    def wait(self, timeout: float = LONGEST_S) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            pytest.fail(f"the driver did not end in {timeout} s:\n{self.output}")

    def last_json(self) -> Any:
        """What the script printed last, as JSON."""
        return json.loads(self.output.strip().splitlines()[-1])


def _clean_environment(own_server: bool, own_ray: bool) -> dict[str, str]:
    """The session's environment, as if it had not been started by make."""
    environment = {key: value for key, value in os.environ.items() if key not in ("RAY_ADDRESS", "MAKELEVEL")}
    # Of a server that Prefect itself starts, for a flow that is called without fit(). Ours have it switched off anyway.
    environment["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    if own_server:
        environment.pop("PREFECT_API_URL", None)
    if not own_ray:
        environment["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    return environment


def joining_environment() -> dict[str, str]:
    """The environment of a process that joins the session's Prefect server and its Ray, both of which are started."""
    from trainlib.flows import _embedded as embedded

    embedded.start()
    embedded.wait()
    cluster.connect()
    return _clean_environment(own_server=False, own_ray=False)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Starts scripts, and makes sure that none outlives its test."""
    with drivers(tmp_path) as start:
        yield start


class Here:
    """Runs scripts in this process, which is quicker than in one of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._script = folder / "script_here.py"
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.output = ""
        """What the last one has printed, and what was shown of its trainings."""

    def __call__(self, source: str, *args: str) -> Any:
        """Gives what the script printed last, as JSON."""
        self._script.write_text(textwrap.dedent(source))
        self._monkeypatch.setattr(sys, "argv", [str(self._script), *args])
        self._capsys.readouterr()
        runpy.run_path(str(self._script), run_name="__main__")
        printed = self._capsys.readouterr()
        self.output = printed.err + printed.out
        return json.loads(printed.out.strip().splitlines()[-1])


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


@contextmanager
def drivers(folder: Path) -> Iterator[Callable[..., Driver]]:
    """Gives a function that starts scripts in a folder; none outlives the block.

    They use the session's MLflow store, and join its Prefect server and its Ray. With ``own_server`` and ``own_ray``
    they start their own, as they do for a user: for tests of how those are started, used and ended.
    """
    from trainlib.flows import _embedded as embedded

    started: list[Driver] = []

    def start(source: str, *args: str, own_server: bool = False, own_ray: bool = False, **env: str) -> Driver:
        if not own_server:
            embedded.start()
            embedded.wait()
        if not own_ray:
            cluster.connect()
        script = folder / f"script_{len(started)}.py"
        script.write_text(textwrap.dedent(source))
        started.append(Driver(script, *args, env={**_clean_environment(own_server, own_ray), **env}))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
