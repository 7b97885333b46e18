"""Prefect's server ends or hangs during a training: the training does not mind, and nothing is lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests import process_logs
from trainlib.flows._embedded import answers

SCRIPT = """
    import json, sys, time
    from pathlib import Path
    from trainlib import DataParallelTrainer, session

    steps, mark = int(sys.argv[1]), sys.argv[2]

    def loop():
        for step in range(steps):
            session.report({"step": step})
            Path(mark).touch()
            time.sleep(0.5)

    trainer = DataParallelTrainer(loop)
    results = [trainer.fit()]
    ended = Path(mark).stat().st_mtime
    took = time.time() - ended
    if len(sys.argv) > 3:
        results.append(DataParallelTrainer(loop).fit())
    print(json.dumps({
        "steps": [result.metrics["step"] for result in results],
        "flow_runs": [result.flow_run_id for result in results],
        "ended_after": took,
    }), flush=True)
"""


def server_of(pid: int) -> psutil.Process:
    """The embedded server of a driver."""
    (server,) = [child for child in psutil.Process(pid).children() if "trainlib.flows._serve" in child.cmdline()]
    return server


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_embedded_server_is_restarted_and_knows_how_it_ended(driver, flow_state, tmp_path, fault):
    mark = tmp_path / "mark"
    process = driver(SCRIPT, "8", str(mark), "again", own_server=True)
    process.wait_for(mark.exists)
    before = server_of(process.process.pid)
    before.send_signal(fault)
    assert process.wait() == 0, process.output
    told = process.last_json()
    assert told["steps"] == [7, 7]
    assert told["ended_after"] < 60, "it waits for the server to be back, and not longer"
    assert [flow_state(flow_run) for flow_run in told["flow_runs"]] == ["COMPLETED", "COMPLETED"]
    assert not before.is_running()
    assert "Traceback" not in process.output


@contextmanager
def prefect_server(port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of Prefect's, as somebody has started it."""
    with open(log, "ab") as output:
        command = [sys.executable, "-m", "trainlib.flows._serve", str(port)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    process_logs.follow("the test's Prefect server", log)
    try:
        deadline = time.monotonic() + 120
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


def test_a_server_that_is_gone_at_the_end_hears_of_it_when_it_is_back(
    driver: Callable, flow_state: Callable, free_port: int, tmp_path: Path
):
    mark, log = tmp_path / "mark", tmp_path / "server.log"
    api = {"PREFECT_API_URL": f"http://127.0.0.1:{free_port}/api"}
    with prefect_server(free_port, log) as server:
        process = driver(SCRIPT, "4", str(mark), **api)
        process.wait_for(mark.exists)
        os.kill(server.pid, signal.SIGKILL)
        assert process.wait() == 0, process.output
    told = process.last_json()
    assert told["steps"] == [3]
    assert 25 < told["ended_after"] < 60, "it is waited for 30 s"
    assert "does not answer, so it does not show how this run ended" in process.output
    assert "Traceback" not in process.output
    with prefect_server(free_port, log):
        again = driver(SCRIPT, "1", str(tmp_path / "mark2"), **api)
        assert again.wait() == 0, again.output
    assert flow_state(told["flow_runs"][0]) == "COMPLETED"
