"""Choosing checkpoints across runs, and registering them as model versions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trainlib import _storage as storage
from trainlib._registry import tags
from trainlib._registry.aliases import AliasMove, holding_version, move_alias, point_alias, roll_back
from trainlib._registry.client import connect
from trainlib._registry.inputs import lineage_tags
from trainlib._registry.logged_models import find_checkpoint, read_checkpoints
from trainlib._registry.promotion import is_better
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import current_store
from trainlib._serving.files import put_model_files
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class Selection:
    """A checkpoint that was chosen, and what it was chosen by."""

    run_id: str
    model_id: str
    location: str
    iteration: int
    metric: str
    mode: Literal["max", "min"]
    score: float

    def beats(self, score: float) -> bool:
        """Whether it is better than another checkpoint with that score."""
        return is_better(self.score, score, self.mode)


@dataclass(frozen=True)
class ModelVersion:
    """A version in MLflow's model registry."""

    name: str
    version: str
    alias: str
    promoted: bool
    """Whether the alias points to it now. It moves only if the version beats the one that had it."""
    previous_score: float | None


@dataclass(frozen=True)
class HeldOutScores:
    """What a checkpoint scores on rows that neither training nor selection has seen."""

    metrics: Mapping[str, float]
    rows: int
    digest: str
    """Of the rows."""
    code: str
    """A digest of the function that has evaluated it."""

    @property
    def measured_on(self) -> str:
        """What they were measured on, and with what. Scores of which it is the same can be compared.

        Example:
            >>> HeldOutScores({"accuracy": 0.9}, rows=180, digest="d1", code="c1").measured_on
            '180 rows, digest d1, evaluated by code c1'
        """
        return f"{self.rows} rows, digest {self.digest}, evaluated by code {self.code}"


@dataclass(frozen=True)
class AliasHolder:
    """The version that an alias points to, with what is recorded of it by one metric."""

    version: str
    location: str | None
    """Where the files of its checkpoint are. None if trainlib has not registered it."""
    recorded: float | None
    """What its training had reported."""
    recorded_held_out: float | None
    """What it scored on the rows that were held out when it was registered."""


def select(run_ids: list[str], metric: str, mode: Literal["max", "min"]) -> Selection:
    """The best committed checkpoint of these runs by a metric it was reported with.

    Raises:
        LookupError: none of their checkpoints has that metric.
    """
    if mode not in ("max", "min"):
        raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
    candidates: list[tuple[str, SavedCheckpoint]] = []
    with _client() as client:
        for run_id in run_ids:
            experiment_id = client.get_run(run_id).info.experiment_id
            candidates += [(run_id, saved) for saved in read_checkpoints(client, experiment_id, run_id).saved]
    scored = [
        (saved.metrics[metric], run_id, saved)
        for run_id, saved in candidates
        if metric in saved.metrics and not math.isnan(saved.metrics[metric])
    ]
    if not scored:
        names = {name for _, saved in candidates for name in saved.metrics}
        raise LookupError(
            f"none of the {len(candidates)} checkpoints of run(s) {', '.join(run_ids)} was reported with a number for "
            f"{metric!r}; their metrics are: {', '.join(sorted(names)) or 'none'}. Report it together with a checkpoint, "
            "or select by one of these."
        )
    sign = 1 if mode == "max" else -1
    score, run_id, saved = max(scored, key=lambda item: (sign * item[0], item[2].index))
    return Selection(run_id, saved.model_id, saved.location, saved.iteration, metric, mode, score)


def register(selection: Selection, name: str, alias: str = "best") -> ModelVersion:
    """Make a model version of a checkpoint, and move the alias to it if it beats the version that holds it."""
    scores = {tags.model_metric(selection.metric): repr(selection.score)}
    with _client() as client:
        version = _create_version(client, name, selection.run_id, selection, scores)
        promoted, previous = _promote(client, selection, name, version, alias)
    return ModelVersion(name, version, alias, promoted, previous)


def register_version(selection: Selection, name: str, held_out: HeldOutScores | None = None) -> str:
    """Make a model version of a checkpoint, unless it is one already. No alias is moved.

    All that is known of the version is written with it: there is no version that is incomplete.

    Args:
        selection: The checkpoint.
        name: The registered model's name; it is created if it is not there.
        held_out: What the checkpoint scores on rows that were held out.
    """
    scores = {tags.model_metric(selection.metric): repr(selection.score)}
    if held_out is not None:
        scores |= {tags.held_out_metric(metric): repr(value) for metric, value in held_out.metrics.items()}
        scores[tags.HELD_OUT_DATA] = held_out.measured_on
    with _client() as client:
        known = _version_of(client, name, selection.model_id)
        return known or _create_version(client, name, selection.run_id, selection, scores)


def find_holder(name: str, alias: str, metric: str) -> AliasHolder | None:
    """The version that an alias of a model points to. None if there is no such model or alias."""
    with _client() as client:
        found = holding_version(client, name, alias)
    if found is None:
        return None
    recorded, held_out = found.tags.get(tags.model_metric(metric)), found.tags.get(tags.held_out_metric(metric))
    return AliasHolder(
        version=str(found.version),
        location=found.tags.get(tags.LOCATION),
        recorded=float(recorded) if recorded is not None else None,
        recorded_held_out=float(held_out) if held_out is not None else None,
    )


def take_alias(name: str, alias: str, version: str, holder: str | None) -> bool:
    """Point an alias to a version, if it still points to ``holder``. Gives whether it was moved."""
    with _client() as client:
        return move_alias(client, name, alias, version, holder)


def promote_checkpoint(model_id: str, name: str, alias: str = "best") -> AliasMove:
    """Point an alias to a checkpoint, whatever had it before. It becomes a version of the model, unless it is one.

    Args:
        model_id: The id of the checkpoint.
        name: The name of the model.
        alias: The alias.

    Raises:
        CheckpointNotFoundError: there is no such checkpoint.
    """
    with _client() as client:
        run_id, saved = find_checkpoint(client, model_id)
        version = _version_of(client, name, model_id)
        if version is None:
            # Versions are compared by these later, by whatever metric somebody selects.
            numbers = {metric: value for metric, value in saved.metrics.items() if isinstance(value, (int, float))}
            scores = {tags.model_metric(metric): repr(value) for metric, value in numbers.items()}
            version = _create_version(client, name, run_id, saved, scores)
        return point_alias(client, name, alias, version)


def promote_version(name: str, alias: str = "best", version: str | None = None) -> AliasMove:
    """Point an alias to a version of a model, by default the newest, whatever had it before.

    Raises:
        ModelNotFoundError: there is no such model or version.
    """
    with _client() as client:
        return point_alias(client, name, alias, version)


def roll_back_alias(name: str, alias: str = "best") -> AliasMove:
    """Point an alias to the version that had it before.

    Raises:
        ModelNotFoundError: there is no such model or alias.
        NoEarlierVersionError: no version is known that had it before.
    """
    with _client() as client:
        return roll_back(client, name, alias)


def has_models() -> bool:
    """Whether any model is registered."""
    with _client() as client:
        return bool(client.search_registered_models(max_results=1))


def _version_of(client: MlflowClient, name: str, model_id: str) -> str | None:
    """The newest version of a model that was made of a checkpoint."""
    found = client.search_model_versions(f"name = {tags.quoted(name)}", order_by=["version_number DESC"])
    return next((str(version.version) for version in found if version.source == _source(model_id)), None)


def _source(model_id: str) -> str:
    return f"models:/{model_id}"


def _create_version(
    client: MlflowClient, name: str, run_id: str, checkpoint: SavedCheckpoint | Selection, scores: dict[str, str]
) -> str:
    """Make a model version of a checkpoint; ``scores`` are the tags that it is compared by.

    What MLflow needs to load it is put beside the checkpoint first: no version is without.
    """
    from mlflow.exceptions import MlflowException

    try:
        problem = put_model_files(find_checkpoint(client, checkpoint.model_id)[1], run_id)
    except CheckpointNotFoundError:  # it was deleted meanwhile; what is known of it is still worth a version
        problem = "its files are gone"
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    version = client.create_model_version(
        name,
        source=_source(checkpoint.model_id),
        run_id=run_id,
        model_id=checkpoint.model_id,
        tags={
            **scores,
            tags.ITERATION: str(checkpoint.iteration),
            tags.LOCATION: storage.absolute(checkpoint.location),
            tags.SERVED: "yes" if problem is None else f"no: {problem}",
            **lineage_tags(client.get_run(run_id)),
        },
        await_creation_for=0,
    )
    return str(version.version)


def _promote(
    client: MlflowClient, selection: Selection, name: str, version: str, alias: str
) -> tuple[bool, float | None]:
    """Move the alias to a version if it beats the one that holds it. Gives whether it moved, and the score it had to beat.

    Other processes may register versions of the same model meanwhile. The alias moves only if it still points to the
    version that was compared.
    """
    score_tag = tags.model_metric(selection.metric)
    while True:
        holder = holding_version(client, name, alias)
        previous = float(holder.tags[score_tag]) if holder is not None and score_tag in holder.tags else None
        if previous is not None and not selection.beats(previous):
            return False, previous
        if move_alias(client, name, alias, version, None if holder is None else str(holder.version)):
            return True, previous


@contextmanager
def _client() -> Iterator[MlflowClient]:
    """A client of the current store. MLflow's model registry also looks at the store in use."""
    store = current_store()
    with store.in_use():
        yield connect(store)
