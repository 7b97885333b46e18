"""What integration tests share: the registry as a user would read it, Prefect's states, and driver processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from trainlib._registry.client import connect
from trainlib._registry.store import current_store


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
def flow_state() -> Callable[[str], str]:
    """The state type of a Prefect flow run, e.g. COMPLETED."""

    def read(flow_run_id: str) -> str:
        from uuid import UUID

        from prefect.client.orchestration import get_client

        from trainlib.flows import embedded

        embedded.start()
        embedded.wait()
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(flow_run_id)).state
            assert state is not None
            return str(state.type.value)

    return read


class Driver:
    """A user's script in a process of its own."""

    def __init__(self, script: Path, *args: str, env: dict[str, str]) -> None:
        self._output = script.with_suffix(".log")
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

    def wait_for(self, what: Callable[[], bool], timeout: float = 90.0) -> None:
        deadline = time.monotonic() + timeout
        while not what():
            assert self.process.poll() is None, f"the driver ended early:\n{self.output}"
            assert time.monotonic() < deadline, f"waited {timeout} s:\n{self.output}"
            time.sleep(0.05)

    def wait(self, timeout: float = 120.0) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            pytest.fail(f"the driver did not end in {timeout} s:\n{self.output}")

    def last_json(self) -> Any:
        """What the script printed last, as JSON."""
        return json.loads(self.output.strip().splitlines()[-1])


def _clean_environment(own_server: bool) -> dict[str, str]:
    """The session's environment, as if it had not been started by make."""
    left_out = ("RAY_ADDRESS", "MAKELEVEL", *(["PREFECT_API_URL"] if own_server else []))
    return {key: value for key, value in os.environ.items() if key not in left_out}


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Starts scripts, and makes sure that none outlives its test.

    They talk to the session's Prefect server; with ``own_server`` they start one, as they do for a user.
    """
    from trainlib.flows import embedded

    started: list[Driver] = []

    def start(source: str, *args: str, own_server: bool = False, **env: str) -> Driver:
        if not own_server:
            embedded.start()
            embedded.wait()
        script = tmp_path / f"script_{len(started)}.py"
        script.write_text(textwrap.dedent(source))
        started.append(Driver(script, *args, env={**_clean_environment(own_server), **env}))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
