"""Which Ray a training joins."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from trainlib import __version__
from trainlib._execution import cluster
from trainlib._platform import joining, record
from trainlib._process import Process
from trainlib.errors import ConnectionFailedError, PlatformMismatchError


@pytest.fixture
def nobody_listens(monkeypatch, tmp_path):
    """The address of a platform's Ray that is up, as far as is written down."""
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        record.write(record.Platform(str(Process.this()), "", "", address, version=__version__))
        yield address


def test_that_of_the_platform_unless_the_environment_says_otherwise(nobody_listens, monkeypatch):
    assert cluster._address() == nobody_listens
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert cluster._address() == "10.0.0.1:6379"
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert cluster._address() == ""


def test_its_own_without_a_platform(nobody_listens):
    record.forget()
    assert cluster._address() == ""


def test_that_of_another_environments_platform_is_refused_whatever_the_other_servers_are(nobody_listens, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://mine:4200/api")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    record.write(replace(record.running(), python="/opt/other"))
    with pytest.raises(PlatformMismatchError, match="runs the environment /opt/other"):
        cluster.require_answer()


def test_a_ray_that_the_platform_is_restarting_is_waited_for(nobody_listens):
    """It has another address then."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def greet() -> None:
            connection = listening.accept()[0]  # a look whether somebody listens
            connection.close()
            connection = listening.accept()[0]
            connection.send(b"gRPC")
            connection.close()

        threading.Thread(target=greet, daemon=True).start()
        restarted = replace(record.running(), ray=address)
        threading.Timer(0.5, record.write, [restarted]).start()
        cluster.require_answer()
        assert cluster._address() == address


def test_a_platform_whose_ray_does_not_answer_is_named(nobody_listens, monkeypatch):
    monkeypatch.setattr(joining, "RESTART_S", 0.3)
    with pytest.raises(
        ConnectionFailedError, match=f"a platform is up.*{nobody_listens}.*trainlib status.*RAY_ADDRESS=local"
    ):
        cluster.require_answer()
    monkeypatch.setenv("RAY_ADDRESS", nobody_listens)
    with pytest.raises(ConnectionFailedError, match=f"RAY_ADDRESS={nobody_listens}"):
        cluster.require_answer()
