"""Waiting for MLflow while it is away. The calls are plain functions: what counts is what they raise."""

from __future__ import annotations

import sqlite3
import threading

import pytest
import requests
from mlflow.exceptions import InvalidUrlException, MlflowException, RestException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, INTERNAL_ERROR, INVALID_PARAMETER_VALUE, TEMPORARILY_UNAVAILABLE

from trainlib._registry import patience as module
from trainlib._registry.patience import Patience, is_away
from trainlib.errors import ConnectionFailedError


def caused_by(cause: Exception) -> MlflowException:
    error = MlflowException(str(cause), INTERNAL_ERROR)
    error.__cause__ = cause
    return error


def http_error(status: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (MlflowException("API request to http://x failed with exception refused"), True),
        (caused_by(requests.Timeout("10 s")), True),
        (MlflowException("database is locked", TEMPORARILY_UNAVAILABLE), True),
        (RestException({"error_code": "INTERNAL_ERROR", "message": "bad gateway"}), True),
        (requests.ConnectionError("refused"), True),
        (http_error(503), True),
        (sqlite3.OperationalError("unable to open database file"), True),
        (ConnectionResetError("gone"), True),
        (MlflowException("Changing param values is not allowed", INVALID_PARAMETER_VALUE), False),
        (MlflowException("an integrity error", BAD_REQUEST), False),
        (RestException({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such run"}), False),
        (caused_by(TypeError("a bug")), False),
        (InvalidUrlException("Invalid url"), False),
        (http_error(404), False),
        (FileNotFoundError("no such file"), False),
    ],
)
def test_what_means_that_mlflow_is_away(error, away):
    assert is_away(error) is away


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.01)


class Server:
    """Refuses so many calls, and then answers."""

    def __init__(self, away: float) -> None:
        self.left = away
        self.calls = 0

    def ask(self, question: str) -> str:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise ConnectionRefusedError("Connection refused")
        return f"{question}: yes"


def test_a_call_waits_and_goes_on_with_one_line_each():
    patience, server = Patience(60.0, "http://mlflow"), Server(away=5)
    assert patience(server.ask, "there") == "there: yes"
    waiting, going_on = patience.remarks()
    assert waiting.startswith(
        "MLflow at http://mlflow does not answer (connection refused). Waiting for it, for up to 1 min"
    )
    assert going_on.startswith("MLflow answers again, after")
    assert patience.remarks() == []
    assert not patience.is_waiting
    assert patience.was_away


def test_a_refusal_is_not_waited_for():
    def refuse() -> None:
        raise MlflowException("no such run", INVALID_PARAMETER_VALUE)

    patience = Patience(60.0, "http://mlflow")
    with pytest.raises(MlflowException, match="no such run"):
        patience(refuse)
    assert patience.remarks() == []


def test_after_the_limit_calls_fail_at_once_until_another_attempt_begins(monkeypatch):
    patience, server = Patience(0.1, "http://mlflow"), Server(away=float("inf"))
    with pytest.raises(
        ConnectionFailedError, match=r"has not answered for .* \(connection refused\).*mlflow_timeout_min"
    ):
        patience(server.ask, "there")
    assert len(patience.remarks()) == 1
    before = server.calls
    with pytest.raises(ConnectionFailedError):
        patience(server.ask, "there")
    assert server.calls == before
    monkeypatch.setattr(module, "REST_S", 0.0)
    with pytest.raises(ConnectionFailedError):
        patience(server.ask, "there")
    assert server.calls == before + 1, "now and then, one is tried"
    patience.renew()
    with pytest.raises(ConnectionFailedError):
        patience(server.ask, "there")
    assert server.calls > before + 3
    assert patience.remarks() == [], "it is said once"
    server.left = 0
    assert patience(server.ask, "there") == "there: yes"
    assert len(patience.remarks()) == 1


def test_a_training_that_was_ended_does_not_wait_for_minutes():
    patience = Patience(600.0, "http://mlflow")
    threading.Timer(0.1, patience.hurry, [0.1]).start()
    with pytest.raises(ConnectionFailedError):
        patience(Server(away=float("inf")).ask, "there")


def test_a_call_that_hangs_is_noticed_while_it_does(monkeypatch):
    monkeypatch.setattr(module, "HANGS_S", 0.05)
    patience, answer = Patience(60.0, "http://mlflow"), threading.Event()
    asking = threading.Thread(target=patience, args=(answer.wait,))
    asking.start()
    remarks: list[str] = []
    while not remarks:
        remarks = patience.remarks()
    assert "it hangs" in remarks[0]
    assert patience.is_waiting
    answer.set()
    asking.join()
    assert patience.remarks()[0].startswith("MLflow answers again")
    upload = threading.Event()
    uploading = threading.Thread(target=patience.unwatched, args=(upload.wait, 0.2))
    uploading.start()
    uploading.join(0.15)
    assert patience.remarks() == [], "an upload may take its time"
    uploading.join()
