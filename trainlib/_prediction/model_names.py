"""How people name a model: a version or an alias in MLflow's model registry, a checkpoint, or a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._continuing.recorded import is_checkpoint_id, load_recorded
from trainlib._registry.aliases import find_version
from trainlib._registry.client import connect
from trainlib._registry.finding import find_run
from trainlib._registry.logged_models import find_checkpoint, read_checkpoints
from trainlib._registry.retention import SavedCheckpoint, by_quality
from trainlib._registry.store import current_store
from trainlib._settings import TrainerSettings
from trainlib.errors import CheckpointNotFoundError, ModelNotFoundError, RunNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion

__all__ = ["NamedModel", "find_model"]

_PREFIX = "models:/"
_MLFLOW_FILE = "MLmodel"


@dataclass(frozen=True)
class NamedModel:
    """A model that was found."""

    title: str
    """What people call it, e.g. ``digits version 3``."""
    location: str
    """The folder of the checkpoint; or what MLflow loads, if it is none."""
    model_id: str
    """The id of the checkpoint, or of MLflow's logged model. Empty for a version that has none."""
    run_id: str | None = None
    name: str | None = None
    """The registered model, if it was named so."""
    version: str | None = None
    is_checkpoint: bool = True
    """Whether a training of ours has saved it. Otherwise somebody has logged it with MLflow."""
    is_pyfunc: bool = False
    """Whether MLflow itself can predict with it."""
    kind: str = ""
    """The framework whose class the checkpoint was reported as, such as ``torch``."""


def find_model(text: str) -> NamedModel:
    """The model that a person means.

    Args:
        text: ``models:/NAME@ALIAS``, ``models:/NAME/VERSION``, the id of a checkpoint, or a run: its best checkpoint, by the score
            that its ``CheckpointConfig`` names, or else its newest.

    Raises:
        ModelNotFoundError: there is no such model, version or alias.
        CheckpointNotFoundError: there is no such checkpoint, or the run has none.
        RunNotFoundError: there is no such run.
    """
    with _client() as client:
        inner = text.removeprefix(_PREFIX)
        if is_checkpoint_id(inner):
            return _of_checkpoint(*find_checkpoint(client, inner))
        if inner != text:
            return _of_version(client, _version_named(client, text))
        return _of_run(client, text)


def _version_named(client: MlflowClient, text: str) -> RegisteredVersion:
    inner = text.removeprefix(_PREFIX)
    name, at, alias = inner.rpartition("@")
    if at:
        return find_version(client, name, alias=alias)
    name, slash, version = inner.rpartition("/")
    if not slash:
        raise ModelNotFoundError(
            f"{text!r} names no version: write {_PREFIX}{inner}@ALIAS, e.g. @best, or {_PREFIX}{inner}/VERSION"
        )
    return find_version(client, name, version=version)


def _of_version(client: MlflowClient, version: RegisteredVersion) -> NamedModel:
    number = str(version.version)
    title = f"{version.name} version {number}"
    model_id = version.model_id or str(version.source).removeprefix(_PREFIX)
    if is_checkpoint_id(model_id):
        try:
            found = _of_checkpoint(*find_checkpoint(client, model_id))
            return replace(found, title=title, name=version.name, version=number)
        except CheckpointNotFoundError:
            pass  # MLflow's own models have such ids too
    from mlflow.exceptions import MlflowException
    from mlflow.models import get_model_info

    location = f"{_PREFIX}{version.name}/{number}"
    try:
        flavors = get_model_info(location).flavors
    except (MlflowException, OSError) as error:
        raise ModelNotFoundError(f"the files of {title} are gone, or are no model of MLflow's: {error}") from error
    return NamedModel(
        title=title,
        location=location,
        model_id=model_id if is_checkpoint_id(model_id) else "",
        run_id=version.run_id or None,
        name=version.name,
        version=number,
        is_checkpoint=False,
        is_pyfunc="python_function" in flavors,
    )


def _of_run(client: MlflowClient, text: str) -> NamedModel:
    try:
        info = find_run(client, text).info
    except RunNotFoundError as error:
        raise RunNotFoundError(f"{error} A registered model is written as {_PREFIX}NAME@ALIAS.") from None
    saved = read_checkpoints(client, info.experiment_id, info.run_id).saved
    if not saved:
        raise CheckpointNotFoundError(f"{info.run_name!r} (MLflow run {info.run_id}) has no checkpoint to predict with")
    return _of_checkpoint(info.run_id, _best(info.run_id, saved))


def _best(run_id: str, saved: tuple[SavedCheckpoint, ...]) -> SavedCheckpoint:
    if all(each.score is None for each in saved):
        return saved[-1]
    settings = load_recorded(run_id).settings  # which say whether a high or a low score is better
    return (
        by_quality(saved, settings.run_config.checkpoint_config)[-1]
        if isinstance(settings, TrainerSettings)
        else saved[-1]
    )


def _of_checkpoint(run_id: str, saved: SavedCheckpoint) -> NamedModel:
    return NamedModel(
        title=f"checkpoint {saved.model_id}",
        location=saved.location,
        model_id=saved.model_id,
        run_id=run_id,
        is_pyfunc=_MLFLOW_FILE in storage.names_in(saved.location),
        kind=saved.kind,
    )


@contextmanager
def _client() -> Iterator[MlflowClient]:
    """A client of the current store. MLflow's model registry also looks at the store in use."""
    store = current_store()
    with store.in_use():
        yield connect(store)
