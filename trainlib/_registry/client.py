"""The connection to an MLflow store: one that answers, and is set up."""

from __future__ import annotations

import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from trainlib import _storage as storage
from trainlib._home import require_home
from trainlib._registry.database import upgrade
from trainlib._registry.store import TrackingStore
from trainlib._secrets import masked_uri, without_login
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Where `trainlib up` serves the local store. A link into a store that nobody serves leads here.
LOCAL_UI = "http://127.0.0.1:5000"

_ANSWER_S = 5.0


def is_server(uri: str) -> bool:
    """Whether a store is a tracking server, and not a database."""
    return urlparse(uri).scheme in ("http", "https")


def ui_url(uri: str, experiment_id: str, run_id: str) -> str:
    """The page of a run in the MLflow UI.

    Example:
        >>> ui_url("http://mlflow:5000/", "1", "abc")
        'http://mlflow:5000/#/experiments/1/runs/abc'
    """
    base = without_login(uri).rstrip("/") if is_server(uri) else LOCAL_UI
    return f"{base}/#/experiments/{experiment_id}/runs/{run_id}"


def connect(store: TrackingStore) -> MlflowClient:
    """A client of a store that answers. A database that is not there yet is created.

    Raises:
        ConnectionFailedError: it does not answer, or its address makes no sense.
        FormatError: it is in a home folder that a newer trainlib wrote.
    """
    require_answer(store.uri)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # It logs a traceback whenever its database is locked. What is waited for is said elsewhere, in one line.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    with store.in_use():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        try:
            with _creation_lock(store.uri):
                if (database := _own_database(store.uri)) is not None:
                    require_home(database.parent)
                    upgrade(database)
                client = MlflowClient(store.uri)  # this may create the tables already
                client.search_experiments(max_results=1)
        except (MlflowException, OSError) as error:
            raise ConnectionFailedError(
                f"MLflow cannot use MLFLOW_TRACKING_URI={masked_uri(store.uri)} ({str(error).splitlines()[0]}). Correct it, or unset "
                f"it to keep runs in {storage.home()}."
            ) from error
    return client


def _own_database(uri: str) -> Path | None:
    """The database in trainlib's home folder, if a store is that one. It is trainlib's to keep up to date."""
    database = storage.home() / "mlflow.db"
    return database if uri == f"sqlite:///{database}" else None


@contextmanager
def _creation_lock(uri: str) -> Iterator[None]:
    """Let one process at a time open a database file: two that both find no tables would both create them."""
    if not uri.startswith("sqlite:///"):
        yield
        return
    from filelock import FileLock

    database = uri.removeprefix("sqlite:///")
    os.makedirs(os.path.dirname(database), exist_ok=True)
    with FileLock(f"{database}.lock"):
        yield


def require_answer(uri: str) -> None:
    """Raise an error if no server answers at a store's address. MLflow's own client would try for minutes."""
    if not is_server(uri):
        return
    started = time.monotonic()
    try:
        urllib.request.urlopen(f"{without_login(uri).rstrip('/')}/health", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return  # something answers; MLflow's client will say what is wrong with it
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ConnectionFailedError(
            f"no MLflow server answers at MLFLOW_TRACKING_URI={masked_uri(uri)} ({reason}, waited "
            f"{min(_ANSWER_S, time.monotonic() - started):.0f} s). Start it, correct the address, or unset it to keep "
            f"runs in {storage.home()}."
        ) from error
