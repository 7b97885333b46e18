"""urllib3's lines about tries that failed: silent for our own calls, and for nobody else's."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from trainlib._registry.patience import Patience
from trainlib._retry_lines import without_retry_lines


@pytest.fixture
def ask() -> Callable[[], None]:
    """Calls a server that is not there, and tries again once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"

    def call() -> None:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=Retry(total=1, backoff_factor=0)))
            with pytest.raises(requests.ConnectionError):
                session.get(url)

    return call


def test_only_the_calls_in_the_block_are_silent(ask, caplog):
    ask()
    assert caplog.text.count("Retrying (") == 1
    with without_retry_lines():
        with without_retry_lines():
            ask()
        ask()
        logging.getLogger("urllib3.connectionpool").warning("Connection pool is full")
        assert caplog.text.count("Retrying (") == 1
        other = threading.Thread(target=ask)
        other.start()
        other.join()
    assert caplog.text.count("Retrying (") == 2, "another thread's calls are not ours"
    assert "Connection pool is full" in caplog.text
    ask()
    assert caplog.text.count("Retrying (") == 3


def test_what_patience_calls_is_silent(ask, caplog):
    patience = Patience(1.0, "http://mlflow")
    patience(ask)
    patience.unwatched(ask)
    assert "Retrying (" not in caplog.text
