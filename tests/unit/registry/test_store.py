"""Which store is used, and what MLflow sees of it in this process."""

from __future__ import annotations

import os
import threading

import mlflow
import pytest

from trainlib import RunConfig
from trainlib._registry.store import TrackingStore, absolute_uri, current_store
from trainlib.callbacks import MLflowLoggerCallback
from trainlib.callbacks._mlflow import store_of

OTHER = TrackingStore("http://other:5000", "secret")
THIRD = TrackingStore("http://third:5000")


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    """MLflow as in a fresh process. Afterwards it is as the session left it."""
    explicit = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    mlflow.set_tracking_uri(None)
    yield
    mlflow.set_tracking_uri(explicit)


def mlflow_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}


def test_by_default_runs_are_kept_at_home(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    assert current_store() == TrackingStore(f"sqlite:///{tmp_path}/mlflow.db")


def test_the_environment_names_the_store(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
    assert current_store() == TrackingStore("http://mine:5000", "mine")


def test_the_path_of_a_database_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute_uri("sqlite:///runs.db") == f"sqlite:///{tmp_path}/runs.db"
    assert absolute_uri("sqlite:////data/runs.db") == "sqlite:////data/runs.db"
    assert absolute_uri("postgresql://host/runs") == "postgresql://host/runs"


def test_a_folder_stands_for_a_database_in_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    database = f"sqlite:///{tmp_path}/mlruns/mlflow.db"
    assert absolute_uri("mlruns") == absolute_uri("./mlruns") == absolute_uri(f"file://{tmp_path}/mlruns") == database
    assert absolute_uri("~/mlruns") == "sqlite:////home/ada/mlruns/mlflow.db"
    assert absolute_uri(f"{tmp_path}/my runs") == f"sqlite:///{tmp_path}/my runs/mlflow.db"
    for elsewhere in ("databricks", "databricks://profile", "https://host", "mysql://host/db"):
        assert absolute_uri(elsewhere) == elsewhere


def test_a_store_is_in_use_for_a_while_only():
    before = mlflow_variables()
    with OTHER.in_use():
        assert current_store() == OTHER
        assert mlflow.get_tracking_uri() == "http://other:5000"
        assert os.environ["MLFLOW_TRACKING_TOKEN"] == "secret"
        assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "3"
        assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "10"
    assert mlflow_variables() == before
    assert not mlflow.is_tracking_uri_set()


def test_what_was_set_before_is_put_back_also_after_an_error(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    before = mlflow_variables()

    def training() -> None:
        with THIRD.in_use():
            assert "MLFLOW_TRACKING_TOKEN" not in os.environ, "the token of one server is not sent to another"
            assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "7", "the user knows better"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training()
    assert mlflow_variables() == before
    assert mlflow.get_tracking_uri() == "http://mine:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://new:5000")
    assert mlflow.get_tracking_uri() == "http://new:5000", "MLflow looks at the environment again"


def test_what_the_user_told_mlflow_is_put_back():
    mlflow.set_tracking_uri("http://mine:5000")
    os.environ["MLFLOW_TRACKING_URI"] = "http://changed:5000"
    with OTHER.in_use():
        assert mlflow.get_tracking_uri() == "http://other:5000"
    assert mlflow.get_tracking_uri() == "http://mine:5000"
    assert os.environ["MLFLOW_TRACKING_URI"] == "http://changed:5000"


def test_one_within_another():
    with OTHER.in_use():
        with THIRD.in_use():
            assert mlflow.get_tracking_uri() == THIRD.uri
        assert current_store() == OTHER
        assert mlflow.get_tracking_uri() == OTHER.uri
        assert os.environ["MLFLOW_TRACKING_TOKEN"] == "secret"
    assert not mlflow.is_tracking_uri_set()


def test_trainings_that_end_in_any_order_leave_nothing_behind():
    before = mlflow_variables()
    entered, leave = threading.Event(), threading.Event()

    def use_other() -> None:
        with OTHER.in_use():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=use_other)
    other.start()
    assert entered.wait(10)
    assert current_store().uri.startswith("sqlite:"), "what another thread uses is not the default here"
    with THIRD.in_use():
        leave.set()
        other.join()
        assert mlflow.get_tracking_uri() == THIRD.uri, "the one that still runs keeps its store"
    assert mlflow_variables() == before


def test_the_token_is_not_shown():
    assert "secret" not in repr(OTHER)


def test_a_worker_gets_what_it_needs_to_find_the_store():
    assert OTHER.environment == {"MLFLOW_TRACKING_URI": "http://other:5000", "MLFLOW_TRACKING_TOKEN": "secret"}
    assert THIRD.environment == {"MLFLOW_TRACKING_URI": "http://third:5000"}


def test_a_callback_names_the_store_of_a_training(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
    mine = TrackingStore("http://mine:5000", "mine")

    def store(**arguments) -> TrackingStore:
        return store_of(RunConfig(callbacks=[MLflowLoggerCallback(**arguments)]))

    assert store_of(RunConfig()) == mine
    assert store(experiment_name="digits") == mine
    assert store(tracking_uri="sqlite:///runs.db") == TrackingStore(f"sqlite:///{tmp_path}/runs.db", "mine")
    assert store(tracking_uri="http://other:5000", tracking_token="secret") == OTHER
    assert store(tracking_token="secret") == TrackingStore("http://mine:5000", "secret")
    assert current_store() == mine, "the store of a training is a value: asking for it changes nothing"
