"""Prefect's queues are bounded while its server is away."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prefect.events.clients import NullEventsClient
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogHandler, APILogWorker, set_api_log_sink
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_CSRF_SUPPORT_ENABLED,
    PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE,
    PREFECT_LOGGING_TO_API_BATCH_INTERVAL,
    temporary_settings,
)
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from trainlib.flows import _waiting_lines as waiting_lines
from trainlib.flows._waiting_lines import bounded_queues


class Server:
    """Takes log lines as Prefect's server does, once it is there."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_there = threading.Event()
        self.lines: list[dict[str, Any]] = []


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    """It accepts connections, and does not answer before it is there, so that what is sent stays on its way."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.is_asked.set()
            found.is_there.wait(60)
            found.lines += json.loads(sent)
            self.send_response(201)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        away = {
            PREFECT_API_URL: f"http://127.0.0.1:{serving.server_port}/api",
            PREFECT_CLIENT_CSRF_SUPPORT_ENABLED: False,
            PREFECT_LOGGING_TO_API_BATCH_INTERVAL: 0.0,
        }
        with temporary_settings(away):
            yield found
            found.is_there.set()
            APILogWorker.drain_all(timeout=10)
        set_api_log_sink(None)
        serving.shutdown()


@pytest.fixture
def logger() -> logging.Logger:
    """A flow run's logger."""
    found = logging.Logger(__name__, logging.INFO)
    found.addHandler(APILogHandler())
    return found


@pytest.mark.parametrize("text", ["", "x" * 20_000], ids=["many lines", "long lines"])
def test_log_lines_that_are_too_much_for_memory_are_dropped_and_one_line_says_so(
    server, logger, monkeypatch, caplog, text
):
    monkeypatch.setattr(waiting_lines, "MOST_BYTES", 400_000)
    run: dict[str, Any] = {"extra": {"flow_run_id": str(uuid.uuid4())}}
    with bounded_queues():
        logger.info("first", **run)
        assert server.is_asked.wait(20)
        for number in range(1000):
            logger.info("line %d %s", number, text, **run)
        logger.error("it went wrong", **run)
        with (queue := APILogWorker.instance()._queue).mutex:
            waiting = sum(len(json.dumps(line)) for line in queue.queue)
        assert 0 < waiting < 500_000
        assert caplog.text.count("The Prefect server does not take log lines") == 1

        server.is_there.set()
        deadline = time.monotonic() + 20
        while APILogWorker.instance()._queue.qsize():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        logger.info("it is back", **run)
        APILogWorker.drain_all(timeout=20)
    shown = [line["message"] for line in server.lines]
    taken = sum(message.startswith("line ") for message in shown)
    assert shown[0] == "first"
    assert shown[-1] == "it is back"
    assert "it went wrong" in shown, "errors find room"
    assert f"{1000 - taken:,} line(s) are missing here" in " ".join(shown)


@pytest.mark.parametrize(
    ("configured", "bound"), [(0, waiting_lines.MOST_EVENTS), (7, 7)], ids=["default", "the user's own"]
)
def test_the_queue_of_events_has_a_bound(configured, bound):
    settings = {PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE: configured, PREFECT_API_URL: "http://127.0.0.1:9/api"}
    with temporary_settings(settings):
        before = EventsWorker.instance(NullEventsClient)  # as of a flow of the user's that calls a training
        with bounded_queues():
            assert EventsWorker(NullEventsClient, ())._queue.maxsize == bound
            assert before._queue.maxsize == bound
        before.drain()
    set_api_log_sink(None)


SCRIPT = """
import sys
from prefect.events import emit_event
from trainlib.flows._waiting_lines import bounded_queues, give_up_at_exit

def emit(number):
    emit_event("event", resource={"prefect.resource.id": f"test.{number}"})

with bounded_queues():
    emit(0)
    sys.stdin.readline()
    for number in range(20):
        emit(number)
give_up_at_exit()
print("over", flush=True)
"""


def test_a_process_ends_although_its_server_is_gone_with_events_left():
    """Each of them would be tried for some ten seconds."""
    is_told = threading.Event()

    def take_one_event(connection: ServerConnection) -> None:
        connection.recv()
        connection.send(json.dumps({"type": "auth_success"}))
        connection.recv()
        is_told.set()

    with serve(take_one_event, "127.0.0.1", 0, subprotocols=[Subprotocol("prefect")]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = os.environ | {"PREFECT_API_URL": f"http://127.0.0.1:{server.socket.getsockname()[1]}/api"}
        command = [sys.executable, "-c", SCRIPT]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert is_told.wait(60)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"gone\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"over\n"
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait()
