"""A platform of toy services, as real processes: it starts, restarts, gives up, and leaves nothing however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from trainlib._platform import commands, record
from trainlib._platform.record import Platform
from trainlib._platform.watching import MEMORY_S, PAUSES_S, pause_before_restart

# Each toy starts a process of its own, says its address, and lives until it is ended. Its address has its pid.
TOY = """
import json, os, subprocess, sys, time
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], start_new_session=True)
if os.path.exists("broken"):
    sys.exit("out of order")
while os.path.exists(f"{sys.argv[1]}-is-slow"):
    time.sleep(0.02)
print(json.dumps({sys.argv[1]: f"127.0.0.1:{os.getpid()}"}), flush=True)
sys.stdin.read()
"""
# A toy that serves, and answers unless it hangs.
SERVER = """
import http.server, os, sys, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(60 if os.path.exists("hangs") else 0)
        self.send_response(200)
        self.end_headers()

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
PLATFORM = f"""
import logging, os, sys
from trainlib._platform import lock, supervisor, watching
from trainlib._platform.services import Service

logging.basicConfig()
watching.PAUSES_S = (0.0, 0.0, 0.0)
watching.HANGS_S, watching._ASK_EVERY_S = 1.0, 0.1
supervisor._WATCH_S = 0.02
names = ("prefect", "mlflow", "ray", "deployments")
toys = [Service(name, (sys.executable, "-S", "-c", {TOY!r}, name), dict(os.environ)) for name in names]
if port := os.environ.get("SERVER_PORT"):
    address = f"http://127.0.0.1:{{port}}"
    toys[1] = Service("mlflow", (sys.executable, "-c", {SERVER!r}, port), dict(os.environ), address, address)
with lock.only_one() as is_ours:
    assert is_ours
    supervisor.run(toys, auth=False, show=lambda platform: print("up", flush=True))
"""


class Toys:
    """A platform of toys in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLATFORM], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "up\n", self.process.stderr.read()
        self.below = psutil.Process(self.process.pid).children(recursive=True)

    def left(self) -> list[psutil.Process]:
        _, alive = psutil.wait_procs(self.below, timeout=10)
        return alive


@pytest.fixture
def toys(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    toys = Toys(tmp_path)
    yield toys
    toys.process.kill()
    toys.process.wait()


def wait_for(what) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(toys, number):
    assert len(toys.below) == 4 * 3, "for each service its keeper, itself, and what it has started"
    platform = record.running()
    assert sorted(platform.pids) == ["deployments", "mlflow", "prefect", "ray"]
    toys.process.send_signal(number)
    assert toys.process.wait(20) == (-number if number == signal.SIGKILL else 0)
    assert toys.left() == []
    assert record.running() is None


def test_down_ends_it_and_says_whether_there_was_one(toys):
    assert commands.down() is True
    assert toys.left() == []
    assert commands.down() is False


def test_a_service_that_ends_is_restarted_and_found_at_its_new_address(toys, capsys):
    before = record.running()
    commands.up(prefect_port=1, mlflow_port=2, detach=False, auth=False)
    said = capsys.readouterr().out
    assert "is up already" in said
    assert before.ray in said
    os.kill(before.pids["ray"], signal.SIGKILL)
    wait_for(lambda: record.running() != before)
    after = record.running()
    assert after.ray == f"127.0.0.1:{after.pids['ray']}" != before.ray
    assert (after.prefect, after.pids["prefect"]) == (before.prefect, before.pids["prefect"])


def test_a_service_that_is_slow_to_restart_keeps_nobody_from_looking_after_the_others(toys, tmp_path):
    before = record.running()
    (tmp_path / "mlflow-is-slow").touch()
    os.kill(before.pids["mlflow"], signal.SIGKILL)
    os.kill(before.pids["ray"], signal.SIGKILL)
    wait_for(lambda: record.running().ray != before.ray)
    assert record.running().mlflow == before.mlflow, "it still starts"
    (tmp_path / "mlflow-is-slow").unlink()
    wait_for(lambda: record.running().pids["mlflow"] != before.pids["mlflow"])


def test_a_server_that_hangs_is_restarted(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("SERVER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    toys = Toys(tmp_path)
    before = record.running()
    (tmp_path / "hangs").touch()
    wait_for(lambda: not psutil.pid_exists(before.pids["mlflow"]))
    (tmp_path / "hangs").unlink()
    wait_for(lambda: record.running().pids["mlflow"] != before.pids["mlflow"])
    toys.process.send_signal(signal.SIGINT)
    assert toys.process.wait(20) == 0
    assert "mlflow has not answered for 1 s, and is ended" in toys.process.stderr.read()


def test_a_service_that_keeps_ending_ends_the_platform_and_is_named(toys, tmp_path):
    (tmp_path / "broken").touch()
    os.kill(record.running().pids["mlflow"], signal.SIGKILL)
    assert toys.process.wait(30) == 1
    said = toys.process.stderr.read()
    assert "mlflow has ended by itself 4 times" in said
    assert f"Its log is {tmp_path}/platform/logs/mlflow.log, and ends with:\n" in said
    assert said.strip().endswith("out of order")
    assert toys.left() == []


def test_a_service_that_keeps_ending_is_given_up():
    ends = [0.0, 1.0, 2.0]
    assert [pause_before_restart(ends[: count + 1], 2.0) for count in range(3)] == list(PAUSES_S)
    assert pause_before_restart([*ends, 3.0], 3.0) is None
    assert pause_before_restart([*ends, MEMORY_S + 5], MEMORY_S + 5) == PAUSES_S[0], "long ago"


def test_the_record_is_json_that_an_older_process_wrote(tmp_path, monkeypatch):
    """One without the processes of its services."""
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    platform = Platform("node-1:7:1234", "http://127.0.0.1:4200", "http://127.0.0.1:5000", "127.0.0.1:6379")
    record.write(platform)
    file = tmp_path / "platform" / "platform.json"
    fields = json.loads(file.read_text())
    del fields["pids"]
    file.write_text(json.dumps(fields))
    assert record.last() == platform
