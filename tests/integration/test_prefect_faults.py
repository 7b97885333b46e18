"""Prefect's server ends or hangs during a training: the training does not mind, and nothing is lost."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import StateType

from tests import process_logs
from tests.longest import LONGEST_S
from trainlib.tasks._prefect_server import answers

SCRIPT = """
    import json, os, sys, time
    from pathlib import Path
    from trainlib import Checkpoint, DataParallelTrainer, FailureConfig, RunConfig, session
    from trainlib.flows import _embedded, _ending
    from trainlib.tasks import _prefect_server

    folder = Path(sys.argv[1])
    _embedded._HANGS_S = 5.0  # the tests have no time for the real ones
    _prefect_server.RETRY_WAIT_S = 3.0

    def loop(config):
        def wait_for(event):
            while not (folder / f"{event}-{config['number']}").exists():
                time.sleep(0.05)

        number, checkpoint = config["number"], session.get_checkpoint()
        session.report({"number": number}, checkpoint=Checkpoint.from_dict({}))
        (folder / f"trains-{number}").touch()
        if config["dies"] and checkpoint is None:
            wait_for("die")
            os._exit(1)
        wait_for("end")
        session.report({"number": number, "resumed": checkpoint is not None})
        (folder / f"ended-{number}").touch()

    for number, wait_s in enumerate(json.loads(sys.argv[2])):
        _ending.WAIT_S = wait_s
        dies = len(sys.argv) > 3 and number == int(sys.argv[3])
        result = DataParallelTrainer(
            loop,
            train_loop_config={"number": number, "dies": dies},
            run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
        ).fit()
        print(json.dumps({
            "number": result.metrics["number"],
            "resumed": result.metrics["resumed"],
            "flow_run": result.flow_run_id,
            "ended_after": time.time() - (folder / f"ended-{number}").stat().st_mtime,
        }), flush=True)
    while not (folder / "exit").exists():
        time.sleep(0.05)
"""


class Trainings:
    """Trainings that a script makes one after the other, each of which waits until the test lets it go on."""

    def __init__(self, process: Any, folder: Path) -> None:
        self.process = process
        self._folder = folder

    def wait_for(self, number: int) -> None:
        """Return when a training is under way."""
        self.process.wait_for((self._folder / f"trains-{number}").exists)

    def tell(self, what: str) -> None:
        (self._folder / what).touch()

    def end(self, number: int) -> dict[str, Any]:
        """Let a training end; gives its result."""
        self.tell(f"end-{number}")
        self.process.wait_for(lambda: len(self._results()) > number)
        return self._results()[number]

    def _results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.process.output.splitlines() if line.startswith("{")]


@pytest.fixture
def trainings(driver: Callable, tmp_path: Path) -> Callable[..., Trainings]:
    """Starts a script whose trainings each wait so many seconds at their end for a server that does not answer."""

    def start(waits_s: list[float], *args: str, folder: Path = tmp_path, **options: Any) -> Trainings:
        folder.mkdir(exist_ok=True)
        return Trainings(driver(SCRIPT, str(folder), json.dumps(waits_s), *args, **options), folder)

    return start


def wait_until_told(flow_run_id: str, timeout: float) -> None:
    """Wait until the database that all servers here share says that a flow run is completed.

    Unlike ``flow_state``, this delivers nothing. It asks seldom: whoever asks all the time slows the start of a server down.
    """
    deadline = time.monotonic() + timeout
    with get_client(sync_client=True) as client:
        while (state := client.read_flow_run(UUID(flow_run_id)).state) is None or not state.is_completed():
            assert time.monotonic() < deadline, f"waited {timeout} s, and it is {state}"
            time.sleep(0.5)


def task_states(flow_run_id: str) -> list[str]:
    """The states of a flow run's tasks, as Prefect shows them."""
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(flow_run_id)]))
    with get_client(sync_client=True) as client:
        return [str(task.state.type.value) for task in client.read_task_runs(flow_run_filter=of_run) if task.state]


def wait_for_tasks(of_runs: int, since: datetime, timeout: float) -> None:
    """Wait until the database has running tasks of so many flow runs. A server hears of a task a little after it has begun."""
    is_running = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=[StateType.RUNNING])))
    deadline = time.monotonic() + timeout
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_task_runs(task_run_filter=is_running)
            if len({task.flow_run_id for task in found if task.start_time and task.start_time >= since}) >= of_runs:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.5)


def server_of(pid: int) -> psutil.Process:
    """The embedded server of a driver."""
    (server,) = [
        child for child in psutil.Process(pid).children() if any(part.endswith("_serve.py") for part in child.cmdline())
    ]
    return server


def test_the_embedded_server_is_restarted_and_knows_how_it_ended(trainings, flow_state):
    """It is killed in the first training, and hangs for too long at the end of the second."""
    script = trainings([30.0, 0.5], own_server=True)
    script.wait_for(0)
    killed = server_of(script.process.process.pid)
    killed.kill()
    told = script.end(0)
    assert told["ended_after"] < 30, "it waits for the server to be back, and not longer"
    assert flow_state(told["flow_run"]) == "COMPLETED"
    assert "does not answer" not in script.process.output

    script.wait_for(1)
    stopped = server_of(script.process.process.pid)
    stopped.send_signal(signal.SIGSTOP)
    told = script.end(1)
    assert told["ended_after"] < 10
    assert "does not answer, so it does not show how this run ended" in script.process.output
    wait_until_told(told["flow_run"], timeout=LONGEST_S)
    script.tell("exit")
    assert script.process.wait() == 0, script.process.output
    assert not killed.is_running()
    assert not stopped.is_running()
    assert "Traceback" not in script.process.output
    assert "failed to process" not in script.process.output


@contextmanager
def prefect_server(port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of Prefect's, as somebody has started it."""
    with open(log, "ab") as output:
        command = [sys.executable, "-m", "trainlib.flows._serve", str(port)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    process_logs.follow("the test's Prefect server", log)
    try:
        deadline = time.monotonic() + LONGEST_S
        while not answers(f"http://127.0.0.1:{port}/api"):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield server
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_training_does_not_mind_a_server_of_somebody_else_that_hangs_or_is_gone(
    trainings: Callable, flow_state: Callable, free_port: int, tmp_path: Path
):
    """It hangs at the end of the first training, and is gone when the second one is due to be retried.

    Beside them, somebody ends another training while it is gone.
    """
    wait_s, address, begun = 2.0, f"http://127.0.0.1:{free_port}/api", datetime.now(UTC)
    with prefect_server(free_port, tmp_path / "server.log") as server:
        script = trainings([wait_s, wait_s], "1", PREFECT_API_URL=address)
        script.wait_for(0)
        ended = trainings([wait_s], folder=tmp_path / "ended", PREFECT_API_URL=address)
        ended.wait_for(0)
        server.send_signal(signal.SIGSTOP)
        hung = script.end(0)
        assert wait_s < hung["ended_after"] < wait_s + 10, "it is waited for, and not longer"
        assert script.process.output.count("does not answer, so it does not show how this run ended") == 1
        server.send_signal(signal.SIGCONT)
        script.wait_for(1)
        wait_until_told(hung["flow_run"], timeout=10)
        wait_for_tasks(2, since=begun, timeout=30)
    sent = time.monotonic()
    ended.process.process.send_signal(signal.SIGTERM)
    assert ended.process.wait() == 128 + signal.SIGTERM, ended.process.output
    assert time.monotonic() - sent < 10, ended.process.output
    script.tell("die-1")
    script.process.wait_for(lambda: "A retry is due, but the Prefect server does not answer" in script.process.output)
    script.process.wait_for(lambda: "The training goes on without it" in script.process.output)
    gone = script.end(1)
    assert gone["resumed"], "the retry is not lost"
    assert wait_s < gone["ended_after"] < wait_s + 10
    flow_state(gone["flow_run"])  # finds a server that knows the run, as the next training does
    wait_until_told(gone["flow_run"], timeout=10)
    assert set(task_states(gone["flow_run"])) == {"COMPLETED"}, "and not Running for good"
    left = time.monotonic()
    script.tell("exit")
    assert script.process.wait() == 0, script.process.output
    assert time.monotonic() - left < 10, "it does not try to tell its server the rest"
    assert "Traceback" not in script.process.output
    assert "failed to process" not in script.process.output
