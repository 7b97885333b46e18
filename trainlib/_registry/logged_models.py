"""Checkpoints as MLflow keeps them: logged models, whose tags say what a checkpoint is. Reading changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._format import FORMAT
from trainlib._home import require_readable
from trainlib._registry import tags
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import default_store
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel

_LONGEST_TAG = 4500
_AT_ONCE = 100


@dataclass(frozen=True)
class UnfinishedCheckpoint:
    """A checkpoint that does not count: the process that was saving it, or deleting it, ended halfway."""

    model_id: str
    location: str


@dataclass(frozen=True)
class FoundCheckpoints:
    """The checkpoints that MLflow has of a run."""

    saved: tuple[SavedCheckpoint, ...] = ()
    """Those that were committed, by number."""
    unfinished: tuple[UnfinishedCheckpoint, ...] = ()


def read_checkpoints(client: MlflowClient, experiment_id: str, run_id: str) -> FoundCheckpoints:
    """Find the checkpoints of a run. Logged models that are something else are left out."""
    models = [model for model in _models_of_run(client, experiment_id, run_id) if tags.CHECKPOINT_INDEX in model.tags]
    saved = [as_saved(model, client.tracking_uri) for model in models if is_ready(model)]
    return FoundCheckpoints(
        saved=tuple(sorted(saved, key=lambda checkpoint: checkpoint.index)),
        unfinished=tuple(
            UnfinishedCheckpoint(model.model_id, model.artifact_location) for model in models if not is_ready(model)
        ),
    )


def find_checkpoint(client: MlflowClient, model_id: str) -> tuple[str, SavedCheckpoint]:
    """A checkpoint by its id, after the id of its run.

    Raises:
        CheckpointNotFoundError: there is none, or it was never completed.
    """
    from mlflow.exceptions import MlflowException

    try:
        model = client.get_logged_model(model_id)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise
        model = None
    if model is None or tags.CHECKPOINT_INDEX not in model.tags or not is_ready(model):
        raise CheckpointNotFoundError(
            f"no checkpoint has the id {model_id!r} in {client.tracking_uri}. `trainlib checkpoints` lists those that exist"
        )
    return str(model.source_run_id), as_saved(model, client.tracking_uri)


def checkpoint_name(index: int) -> str:
    """What a checkpoint is called: its logged model, its folder, and the link to it.

    Example:
        >>> checkpoint_name(3)
        'checkpoint_000003'
    """
    return f"checkpoint_{index:06d}"


def checkpoint_tags(
    *, index: int, iteration: int, seconds: float, score: float | None, metrics: Mapping[str, Any], kind: str = ""
) -> dict[str, str]:
    """The tags from which :func:`as_saved` knows a checkpoint again."""
    found = {
        tags.CHECKPOINT_INDEX: str(index),
        tags.FORMAT: str(FORMAT),
        tags.ITERATION: str(iteration),
        tags.SECONDS: f"{seconds:.3f}",
    }
    if score is not None:
        found[tags.SCORE] = repr(score)
    if kind:
        found[tags.CHECKPOINT_KIND] = kind
    text = json.dumps(dict(metrics))
    pieces = [text[start : start + _LONGEST_TAG] for start in range(0, len(text), _LONGEST_TAG)]
    return {**found, **{tags.metrics_piece(index): piece for index, piece in enumerate(pieces)}}


def as_saved(model: LoggedModel, uri: str) -> SavedCheckpoint:
    """The checkpoint that a logged model is, in the store at ``uri``.

    Raises:
        FormatError: a newer trainlib wrote it.
    """
    known = model.tags
    index = int(known[tags.CHECKPOINT_INDEX])
    require_readable(int(known.get(tags.FORMAT, "1")), f"the checkpoint {model.artifact_location}")
    score = known.get(tags.SCORE)
    return SavedCheckpoint(
        index=index,
        iteration=int(known[tags.ITERATION]),
        model_id=model.model_id,
        location=location_of(model, index, uri),
        score=float(score) if score is not None else None,
        metrics=_metrics_of(known),
        seconds=float(known.get(tags.SECONDS, "0")),
        kind=known.get(tags.CHECKPOINT_KIND, ""),
    )


def _metrics_of(known: Mapping[str, str]) -> dict[str, Any]:
    pieces: list[str] = []
    while (piece := known.get(tags.metrics_piece(len(pieces)))) is not None:
        pieces.append(piece)
    return json.loads("".join(pieces) or "{}")  # type: ignore[no-any-return]


def location_of(model: LoggedModel, index: int, uri: str) -> str:
    """Where the files of a checkpoint are. The name of the folder tells which checkpoint it is.

    A location behind a tracking server leaves out which server. If the user's environment does not name that
    server, the location does: a checkpoint can be read after its training, too.
    """
    location = storage.absolute(storage.join(model.artifact_location, checkpoint_name(index)))
    if not location.startswith("mlflow-artifacts:") or uri == default_store().uri:
        return location
    from mlflow.store.artifact.mlflow_artifacts_repo import MlflowArtifactsRepository

    return str(MlflowArtifactsRepository.resolve_uri(location, uri))


def is_ready(model: LoggedModel) -> bool:
    """Whether a logged model is complete, and nobody is deleting it."""
    return str(model.status) == "READY" and tags.DELETED not in model.tags


def _models_of_run(client: MlflowClient, experiment_id: str, run_id: str) -> Iterator[LoggedModel]:
    return logged_models(client, experiment_id, f"source_run_id = '{run_id}'")


def logged_models(client: MlflowClient, experiment_id: str, filter_string: str | None = None) -> Iterator[LoggedModel]:
    """The logged models of an experiment, those that are no checkpoints as well."""
    token = None
    while True:
        page = client.search_logged_models(
            [experiment_id], filter_string=filter_string, max_results=_AT_ONCE, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return
