"""The connection to MLflow."""

from __future__ import annotations

import pytest

from trainlib._registry.client import require_answer
from trainlib.errors import ConnectionFailedError


def test_only_servers_are_asked_for_an_answer():
    require_answer("sqlite:////data/mlflow.db")
    with pytest.raises(ConnectionFailedError, match="no MLflow server answers at MLFLOW_TRACKING_URI=http://127"):
        require_answer("http://127.0.0.1:9")
