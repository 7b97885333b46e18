"""The connection to MLflow: the server that ``MLFLOW_TRACKING_URI`` names, or a local SQLite store."""

from __future__ import annotations

import logging
import os
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from trainlib import _storage as storage
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

DEFAULT_EXPERIMENT = "trainlib"
# Where `trainlib up` serves the local store. A link into a store that nobody serves leads here.
LOCAL_UI = "http://127.0.0.1:5000"

_ANSWER_S = 5.0


def tracking_uri() -> str:
    """The store in use, as an absolute URI: workers may run in another directory."""
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{storage.home() / 'mlflow.db'}"
    if uri.startswith("sqlite:///") and not uri.startswith("sqlite:////"):
        return f"sqlite:///{os.path.abspath(uri.removeprefix('sqlite:///'))}"
    return uri


def ui_url(uri: str, experiment_id: str, run_id: str) -> str:
    """The page of a run in the MLflow UI."""
    base = uri.rstrip("/") if urlparse(uri).scheme in ("http", "https") else LOCAL_UI
    return f"{base}/#/experiments/{experiment_id}/runs/{run_id}"


def connect(uri: str) -> MlflowClient:
    """A client whose store answers and is set up.

    Raises:
        ConnectionFailedError: it does not answer, or the address makes no sense.
    """
    require_answer(uri)
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # by default it tries for minutes
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # the result has the link
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
    from mlflow import MlflowClient, set_tracking_uri
    from mlflow.exceptions import MlflowException

    try:
        set_tracking_uri(uri)  # parts of MLflow look only there, whatever their client was made with
        client = MlflowClient(uri)
        if uri.startswith("sqlite:///"):
            # Two processes that both find no tables would both create them.
            from filelock import FileLock

            database = uri.removeprefix("sqlite:///")
            os.makedirs(os.path.dirname(database), exist_ok=True)
            with FileLock(f"{database}.lock"):
                client.search_experiments(max_results=1)
        else:
            client.search_experiments(max_results=1)
    except (MlflowException, OSError) as error:
        raise ConnectionFailedError(
            f"MLflow cannot use MLFLOW_TRACKING_URI={uri} ({str(error).splitlines()[0]}). Correct it, or unset it to "
            f"keep runs in {storage.home()}."
        ) from error
    return client


def require_answer(uri: str) -> None:
    """Raise an error if nobody answers at a server's address. MLflow's own client would try for minutes."""
    if urlparse(uri).scheme not in ("http", "https"):
        return
    deadline = time.monotonic() + _ANSWER_S
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return  # somebody answers; MLflow's client will tell what is wrong
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ConnectionFailedError(
            f"no MLflow server answers at MLFLOW_TRACKING_URI={uri} ({reason}, waited "
            f"{_ANSWER_S - max(0.0, deadline - time.monotonic()):.0f} s). Start it, correct the address, or unset it to "
            f"keep runs in {storage.home()}."
        ) from error


def experiment(client: MlflowClient, name: str | None, storage_path: str | None) -> tuple[str, str, str]:
    """Id, name and artifact location of the experiment, created where it is not there.

    An experiment's location is fixed when it is created, so one with a storage path of its own gets a
    name of its own.
    """
    from mlflow.exceptions import MlflowException

    wanted = storage.absolute(storage_path) if storage_path else None
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or None
    if name is None:
        name = DEFAULT_EXPERIMENT if wanted is None else f"{DEFAULT_EXPERIMENT} · {wanted}"
    found = client.get_experiment_by_name(name)
    if found is None:
        location = storage.join(wanted, "artifacts") if wanted else _default_location(name)
        try:
            found = client.get_experiment(client.create_experiment(name, artifact_location=location))
        except MlflowException:  # another process was faster
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if wanted and not _is_below(found.artifact_location, wanted):
        raise ValueError(
            f"storage_path is {wanted}, but the MLflow experiment {name!r} keeps its artifacts in "
            f"{found.artifact_location}. Choose another experiment_name, or drop storage_path."
        )
    return found.experiment_id, found.name, found.artifact_location


def _default_location(name: str) -> str | None:
    uri = tracking_uri()
    if urlparse(uri).scheme in ("http", "https"):
        return None  # the server decides
    if uri == f"sqlite:///{storage.home() / 'mlflow.db'}":
        return (storage.home() / "artifacts" / name.replace("/", "_")).as_uri()
    if uri.startswith("sqlite:////"):
        return storage.local_path(os.path.dirname(uri.removeprefix("sqlite:///"))).joinpath("artifacts", name).as_uri()  # type: ignore[union-attr]
    return (storage.home() / "artifacts" / name).as_uri()


def _is_below(location: str, root: str) -> bool:
    return storage.absolute(location).startswith(storage.absolute(root).rstrip("/"))
