"""The connection to MLflow."""

from __future__ import annotations

import pytest

from trainlib._registry.client import require_answer, ui_url
from trainlib.errors import ConnectionFailedError


def test_the_page_of_a_run():
    assert ui_url("https://mlflow.example/team/", "1", "abc") == "https://mlflow.example/team/#/experiments/1/runs/abc"
    assert ui_url("sqlite:////data/mlflow.db", "1", "abc") == "http://127.0.0.1:5000/#/experiments/1/runs/abc"


def test_only_servers_are_asked_for_an_answer():
    require_answer("sqlite:////data/mlflow.db")
    with pytest.raises(ConnectionFailedError, match="no MLflow server answers at MLFLOW_TRACKING_URI=http://127"):
        require_answer("http://127.0.0.1:9")
