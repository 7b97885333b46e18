"""Choosing checkpoints across runs, and registering them as model versions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from trainlib import _storage as storage
from trainlib._registry import client as mlflow_client
from trainlib._registry.checkpoints import as_saved, models_of_run
from trainlib._registry.inputs import lineage_tags
from trainlib._registry.retention import SavedCheckpoint

SCORE = "trainlib.metric"


@dataclass(frozen=True)
class Selection:
    """A checkpoint that was chosen, and by what."""

    run_id: str
    model_id: str
    location: str
    iteration: int
    metric: str
    mode: Literal["max", "min"]
    score: float


@dataclass(frozen=True)
class ModelVersion:
    """A version in MLflow's model registry."""

    name: str
    version: str
    alias: str
    promoted: bool
    """Whether the alias points to it now: only if it beats the version that had it."""
    previous_score: float | None


def select(run_ids: list[str], metric: str, mode: Literal["max", "min"]) -> Selection:
    """The best committed checkpoint of these runs by a metric it was reported with.

    Raises:
        LookupError: no checkpoint of them has that metric.
    """
    if mode not in ("max", "min"):
        raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
    client = mlflow_client.connect(mlflow_client.tracking_uri())
    found: list[tuple[float, str, SavedCheckpoint]] = []
    names: set[str] = set()
    total = 0
    for run_id in run_ids:
        run = client.get_run(run_id)
        for model in models_of_run(client, run.info.experiment_id, run_id):
            saved = as_saved(model)
            if saved is None:
                continue
            total += 1
            names |= saved.metrics.keys()
            if metric in saved.metrics and not math.isnan(saved.metrics[metric]):
                found.append((saved.metrics[metric], run_id, saved))
    if not found:
        raise LookupError(
            f"none of the {total} checkpoints of run(s) {', '.join(run_ids)} was reported with a number for {metric!r}; "
            f"their metrics are: {', '.join(sorted(names)) or 'none'}. Report it together with a checkpoint, or select "
            "by one of these."
        )
    sign = 1 if mode == "max" else -1
    score, run_id, saved = max(found, key=lambda item: (sign * item[0], item[2].index))
    return Selection(run_id, saved.model_id, saved.location, saved.iteration, metric, mode, score)


def register(selection: Selection, name: str, alias: str = "best") -> ModelVersion:
    """Make a model version of a checkpoint, and move the alias to it if it beats the version that holds it."""
    from mlflow.exceptions import MlflowException

    client = mlflow_client.connect(mlflow_client.tracking_uri())
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    version = client.create_model_version(
        name,
        source=f"models:/{selection.model_id}",
        run_id=selection.run_id,
        model_id=selection.model_id,
        tags={
            f"{SCORE}.{selection.metric}": repr(selection.score),
            "trainlib.iteration": str(selection.iteration),
            "trainlib.location": storage.absolute(selection.location),
            **lineage_tags(client.get_run(selection.run_id)),
        },
        await_creation_for=0,
    )
    holder = _alias_holder(client, name, alias)
    previous = float(holder.tags[f"{SCORE}.{selection.metric}"]) if _has_score(holder, selection) else None
    promoted = previous is None or _beats(selection, previous)
    if promoted:
        client.set_registered_model_alias(name, alias, version.version)
    return ModelVersion(name, str(version.version), alias, promoted, previous)


def _alias_holder(client: Any, name: str, alias: str) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(name, alias)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise  # not knowing who holds it is no reason to move it
        return None


def _has_score(holder: Any, selection: Selection) -> bool:
    return holder is not None and f"{SCORE}.{selection.metric}" in holder.tags


def _beats(selection: Selection, previous: float) -> bool:
    return selection.score > previous if selection.mode == "max" else selection.score < previous
