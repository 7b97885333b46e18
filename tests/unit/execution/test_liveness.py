"""Whether somebody serves at an address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest

from trainlib._execution import cluster
from trainlib._execution.liveness import is_served
from trainlib.errors import ConnectionFailedError


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_server_that_works():
    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        assert is_served("127.0.0.1", port)
    finally:
        server.stop(None)


def test_a_process_that_hangs_is_no_server_though_the_kernel_accepts_its_connections(listening):
    assert not is_served(*listening.getsockname(), timeout=0.2)


def test_a_cluster_that_hangs_is_an_error_before_anything_starts(listening, monkeypatch):
    host, port = listening.getsockname()
    monkeypatch.setenv("RAY_ADDRESS", f"{host}:{port}")
    monkeypatch.setattr(cluster, "_ANSWER_S", 0.2)
    with pytest.raises(
        ConnectionFailedError, match=r"RAY_ADDRESS=.* \(it accepts connections, and is silent for 0\.2 s\)"
    ):
        cluster.require_answer()


def test_nobody_listens(listening):
    address = listening.getsockname()
    listening.close()
    assert not is_served(*address)


@pytest.mark.parametrize(
    "react",
    [lambda connection: connection.sendall(b"?"), lambda connection: connection.close()],
    ids=["an alert", "hangs up"],
)
def test_a_server_that_wants_another_greeting_works(listening, react: Callable[[socket.socket], None]):
    """As one that is set up for TLS."""

    def serve() -> None:
        connection, _ = listening.accept()
        react(connection)

    threading.Thread(target=serve, daemon=True).start()
    assert is_served(*listening.getsockname())
