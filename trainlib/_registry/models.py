"""Choosing checkpoints across runs, and registering them as model versions."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trainlib import _storage as storage
from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.inputs import lineage_tags
from trainlib._registry.logged_models import read_checkpoints
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import current_store
from trainlib._registry.turns import take_turn
from trainlib._secrets import masked_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion


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
        return self.score > score if self.mode == "max" else self.score < score


@dataclass(frozen=True)
class ModelVersion:
    """A version in MLflow's model registry."""

    name: str
    version: str
    alias: str
    promoted: bool
    """Whether the alias points to it now. It moves only if the version beats the one that had it."""
    previous_score: float | None


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
    from mlflow.exceptions import MlflowException

    with _client() as client:
        try:
            client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        score_tag = tags.model_metric(selection.metric)
        version = client.create_model_version(
            name,
            source=f"models:/{selection.model_id}",
            run_id=selection.run_id,
            model_id=selection.model_id,
            tags={
                score_tag: repr(selection.score),
                tags.ITERATION: str(selection.iteration),
                tags.LOCATION: storage.absolute(selection.location),
                **lineage_tags(client.get_run(selection.run_id)),
            },
            await_creation_for=0,
        )
        promoted, previous = _promote(client, selection, name, str(version.version), alias)
    return ModelVersion(name, str(version.version), alias, promoted, previous)


def _promote(
    client: MlflowClient, selection: Selection, name: str, version: str, alias: str
) -> tuple[bool, float | None]:
    """Move the alias to a version if it beats the one that holds it. Gives whether it moved, and the score it had to beat.

    Other processes may register versions of the same model meanwhile. The alias moves only if it still points to the
    version that was compared, and one process at a time looks and moves it.
    """
    score_tag = tags.model_metric(selection.metric)
    subject = f"{hashlib.sha256(name.encode()).hexdigest()[:8]}.{alias}"
    while True:
        holder = _alias_holder(client, name, alias)
        previous = float(holder.tags[score_tag]) if holder is not None and score_tag in holder.tags else None
        if previous is not None and not selection.beats(previous):
            return False, previous
        with take_turn(client, _run_of_oldest(client, name), subject) as ends:
            now = _alias_holder(client, name, alias)
            if (now and now.version) == (holder and holder.version) and time.monotonic() < ends:
                client.set_registered_model_alias(name, alias, version)
                return True, previous


def _run_of_oldest(client: MlflowClient, name: str) -> str:
    """The run of a model's oldest version, which all processes that register versions of it find."""
    for version in client.search_model_versions(f"name = {tags.quoted(name)}", order_by=["version_number ASC"]):
        if version.run_id and client.get_run(version.run_id).info.lifecycle_stage == "active":
            return str(version.run_id)
    raise LookupError(f"no version of the model {name!r} has a run in {masked_uri(client.tracking_uri)}")


@contextmanager
def _client() -> Iterator[MlflowClient]:
    """A client of the current store. MLflow's model registry also looks at the store in use."""
    store = current_store()
    with store.in_use():
        yield connect(store)


def _alias_holder(client: MlflowClient, name: str, alias: str) -> RegisteredVersion | None:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(name, alias)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise  # without knowing which version holds it, the alias stays
        return None
