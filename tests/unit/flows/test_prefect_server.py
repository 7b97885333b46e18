"""Waiting for a Prefect server that is away."""

from __future__ import annotations

import http.server
import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from trainlib._execution.waiting import CancelledInThreadError, Interruption, cancelled_by
from trainlib.tasks import _prefect_server
from trainlib.tasks._prefect_server import wait_before_retry, wait_until_it_answers


class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port of the API address, at which nobody listens yet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{free}/api"}):
        yield free


def test_a_retry_goes_on_as_soon_as_the_server_is_back(port, caplog):
    def come_back() -> None:
        with http.server.HTTPServer(("127.0.0.1", port), Healthy) as server:
            server.handle_request()

    threading.Timer(0.5, come_back).start()
    started = time.monotonic()
    with caplog.at_level(logging.WARNING, logger="trainlib"):
        wait_before_retry()
    assert 0.5 <= time.monotonic() - started < 10
    assert [record.getMessage() for record in caplog.records] == [
        "A retry is due, but the Prefect server does not answer. Waiting for it, for up to 60 s."
    ]


def test_a_server_that_stays_away_is_not_waited_for_for_ever(port, monkeypatch, caplog):
    monkeypatch.setattr(_prefect_server, "RETRY_WAIT_S", 0.3)
    with caplog.at_level(logging.WARNING, logger="trainlib"):
        wait_before_retry()
    assert caplog.records[-1].getMessage().endswith("goes on without it.")


def test_a_trial_that_is_cancelled_does_not_wait(port):
    event = Interruption()
    event.set()
    with cancelled_by(event), pytest.raises(CancelledInThreadError):
        wait_until_it_answers(60.0)
