"""Prefect's queues are bounded while its server is away."""

from __future__ import annotations

import logging
import socket
import uuid
from collections.abc import Iterator

import pytest
from prefect.events.clients import NullEventsClient
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogHandler, APILogWorker, set_api_log_sink
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE,
    PREFECT_LOGGING_TO_API_BATCH_INTERVAL,
    temporary_settings,
)

from trainlib.flows import _waiting_lines as waiting_lines
from trainlib.flows._waiting_lines import bounded_queues


@pytest.fixture
def logger(monkeypatch) -> Iterator[logging.Logger]:
    """A flow run's logger. The server accepts connections and does not answer, so that what is sent stays on its way."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    found = logging.Logger(__name__, logging.INFO)
    found.addHandler(APILogHandler())
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        away = {
            PREFECT_API_URL: f"http://127.0.0.1:{server.getsockname()[1]}/api",
            PREFECT_CLIENT_MAX_RETRIES: 0,
            PREFECT_LOGGING_TO_API_BATCH_INTERVAL: 0.0,
        }
        with temporary_settings(away):
            yield found
    set_api_log_sink(None)
    APILogWorker.drain_all(timeout=10)


def test_log_lines_are_dropped_when_too_many_wait_and_one_line_says_so(logger, monkeypatch, caplog):
    monkeypatch.setattr(waiting_lines, "MOST_LINES", 100)
    flow_run = {"flow_run_id": str(uuid.uuid4())}
    with bounded_queues():
        for number in range(1000):
            logger.info("line %d", number, extra=flow_run)
        assert APILogWorker.instance()._queue.qsize() <= 100
    assert caplog.text.count("log lines wait for the Prefect server") == 1


@pytest.mark.parametrize(
    ("configured", "bound"), [(0, waiting_lines.MOST_EVENTS), (7, 7)], ids=["default", "the user's own"]
)
def test_the_queue_of_events_has_a_bound(configured, bound):
    with temporary_settings({PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE: configured}), bounded_queues():
        assert EventsWorker(NullEventsClient, ())._queue.maxsize == bound
    set_api_log_sink(None)
