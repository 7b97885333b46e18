"""Which MLflow experiment a run belongs to, and where that experiment keeps artifacts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._platform import record
from trainlib._registry.client import is_server
from trainlib._registry.store import home_store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

DEFAULT_EXPERIMENT = "trainlib"


def find_or_create_experiment(
    client: MlflowClient, uri: str, *, name: str | None, storage_path: str | None
) -> Experiment:
    """The experiment of that name in the store at ``uri``, created if it does not exist.

    An experiment's location is fixed when it is created, so each storage path has an experiment of its own unless a
    name is given.

    Raises:
        ValueError: the experiment exists, and keeps its artifacts outside ``storage_path``, or that cannot be reached.
    """
    wanted = storage.absolute(storage_path) if storage_path else None
    if wanted is not None and storage.local_path(wanted) is None and not storage.is_through_mlflow(wanted):
        storage.filesystem(wanted)  # its driver may be missing
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or None
    if name is None:
        name = DEFAULT_EXPERIMENT if wanted is None else f"{DEFAULT_EXPERIMENT} · {wanted}"
    found = client.get_experiment_by_name(name)
    if found is None:
        from mlflow.exceptions import MlflowException

        location = storage.join(wanted, "artifacts") if wanted else default_location(uri, name)
        try:
            found = client.get_experiment(client.create_experiment(name, artifact_location=location))
        except MlflowException:  # another process was faster
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if wanted and not is_inside(found.artifact_location, wanted):
        raise ValueError(
            f"storage_path is {wanted}, but the MLflow experiment {name!r} keeps its artifacts in "
            f"{found.artifact_location}. Choose another experiment_name, or drop storage_path."
        )
    return found


def default_location(uri: str, name: str) -> str | None:
    """Where a new experiment keeps its artifacts: beside the database, also if a platform serves it. None where a server decides.

    Example:
        >>> default_location("sqlite:////data/mlflow.db", "a/b")
        'file:///data/artifacts/a_b'
    """
    platform = record.running()
    if platform is not None and uri == platform.mlflow:
        uri = home_store().uri
    if is_server(uri):
        return None
    database = uri.removeprefix("sqlite:///")
    root = Path(database).parent if database != uri else storage.home()
    return (root / "artifacts" / name.replace("/", "_")).as_uri()


def is_inside(location: str, root: str) -> bool:
    """Whether a folder is another one, or inside it.

    Example:
        >>> is_inside("/runs/artifacts", "/runs"), is_inside("/runs2/artifacts", "/runs")
        (True, False)
    """
    folder, around = (storage.absolute(each).rstrip("/") for each in (location, root))
    return folder == around or folder.startswith(f"{around}/")
