"""The connection to an MLflow store: one that answers, and is set up."""

from __future__ import annotations

import logging
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
from trainlib._importing import without_collecting
from trainlib._platform import joining, record
from trainlib._registry.database import upgrade
from trainlib._registry.early_client import early_client
from trainlib._registry.store import TrackingStore
from trainlib._schema import templates
from trainlib._secrets import without_login
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

_ANSWER_S = 5.0
_LOOK_S = 0.2


def is_server(uri: str) -> bool:
    """Whether a store is a tracking server, and not a database."""
    return urlparse(uri).scheme in ("http", "https")


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
        with without_collecting():
            from mlflow import MlflowClient, __version__
            from mlflow.exceptions import MlflowException

        try:
            with _creation_lock(store.uri):
                if (database := _own_database(store.uri)) is not None:
                    require_home(database.parent)
                    upgrade(database)
                if (database := _database_file(store.uri)) is not None:
                    templates.create(database, "mlflow", __version__)
                client = MlflowClient(store.uri)  # this may create the tables already
                client.search_experiments(max_results=1)
        except (MlflowException, OSError) as error:
            raise ConnectionFailedError(
                f"MLflow cannot use MLFLOW_TRACKING_URI={store.uri} ({str(error).splitlines()[0]}). Correct it, or unset "
                f"it to keep runs in {storage.home()}."
            ) from error
    return client


def connect_to_begin(store: TrackingStore) -> MlflowClient:
    """The same, for a training that begins: it does not wait until MLflow is imported, if a platform has its server.

    Raises:
        ConnectionFailedError, FormatError: as :func:`connect` does.
    """
    early = early_client(store)
    if early is None:
        return connect(store)
    require_answer(store.uri)
    return early


def _own_database(uri: str) -> Path | None:
    """The database in trainlib's home folder, if a store is that one. It is trainlib's to keep up to date."""
    database = storage.home() / "mlflow.db"
    return database if uri == f"sqlite:///{database}" else None


@contextmanager
def _creation_lock(uri: str) -> Iterator[None]:
    """Let one process at a time open a database file: two that both find no tables would both create them."""
    if (database := _database_file(uri)) is None:
        yield
        return
    from filelock import FileLock

    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{database}.lock"):
        yield


def _database_file(uri: str) -> Path | None:
    """The file of a store that is an SQLite database."""
    scheme, _, path = uri.partition("?")[0].partition(":///")
    return Path(path) if scheme == "sqlite" and path else None


def require_answer(uri: str) -> None:
    """Raise an error if no server answers at a store's address. MLflow's own client would try for minutes."""
    if not is_server(uri):
        return
    started = time.monotonic()
    while (error := _no_answer(uri)) is not None:
        platform = record.running()
        if platform is None or uri != platform.mlflow:
            raise ConnectionFailedError(
                f"no MLflow server answers at MLFLOW_TRACKING_URI={uri} ({getattr(error, 'reason', error)}, waited "
                f"{min(_ANSWER_S, time.monotonic() - started):.0f} s). Start it, correct the address, or unset it to keep "
                f"runs in {storage.home()}."
            ) from error
        if time.monotonic() - started > joining.RESTART_S:
            raise joining.no_answer("MLflow", uri) from error
        time.sleep(_LOOK_S)


def _no_answer(uri: str) -> Exception | None:
    """Why no server answers at an address; None if one does."""
    try:
        urllib.request.urlopen(f"{without_login(uri).rstrip('/')}/health", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return None  # something answers; MLflow's client will say what is wrong with it
    except (OSError, ValueError) as error:
        return error
    return None
