"""What to predict, checked before anything is started."""

from __future__ import annotations

import os
import re
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainlib import _rooms as rooms
from trainlib import _storage as storage
from trainlib._data.preprocessors import require_columns
from trainlib._data.sources import Source
from trainlib._prediction.model_names import NamedModel
from trainlib._prediction.predictor import Recipe
from trainlib._registry.store import current_store
from trainlib._secrets import require_no_password
from trainlib._serving.checkpoints import why_not_served
from trainlib._serving.preprocessing import without_absent_labels
from trainlib._trainable import load_trainable
from trainlib.checkpoint import Checkpoint
from trainlib.errors import DataError, InvalidArgumentError

__all__ = ["PredictionPlan", "plan_prediction", "require_function"]

_NOT_IN_NAMES = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True)
class PredictionPlan:
    """What to predict, already checked, and where the result will be."""

    model: NamedModel
    source: Source
    recipe: Recipe
    folder: str
    num_workers: int = 2
    use_gpu: bool = False
    batch_size: int = 1024


def plan_prediction(
    model: NamedModel,
    source: Source,
    *,
    predictor: str | None = None,
    keep_columns: list[str] | None = None,
    preprocess: bool = True,
    storage_path: str | None = None,
    **resources: Any,
) -> PredictionPlan:
    """Check what can be checked without Ray.

    Args:
        model: What predicts.
        source: The rows.
        predictor: ``module:function``, which is called with the checkpoint, and returns what is called with each batch. None: the
            model predicts by itself.
        keep_columns: The columns to keep beside the predictions. None: all.
        preprocess: Whether the preprocessor that was saved with the checkpoint is applied to the rows.
        storage_path: Where the folder of the predictions is made. None: in trainlib's home.
        resources: ``num_workers``, ``use_gpu`` and ``batch_size``.

    Raises:
        InvalidArgumentError: the model cannot predict so, or a column does not exist. The message begins with the argument's name.
        DataError: the dataset lacks a column that the model's preprocessor needs.
    """
    require_function(predictor)
    is_served = predictor is None and model.is_checkpoint and not model.is_pyfunc
    if predictor is None and not model.is_pyfunc:
        _require_served(model)
    known = list(source.columns)
    for column in keep_columns or ():
        if column not in known:
            raise InvalidArgumentError(
                f"keep_columns: {source.uri} has no column {column!r}; it has {', '.join(known)}"
            )
    if preprocess and model.is_checkpoint:
        _require_input(model, source)
    recipe = Recipe(
        location=model.location,
        is_checkpoint=model.is_checkpoint,
        kind=model.kind,
        function=predictor,
        is_served=is_served,
        preprocess=preprocess,
        kept_columns=tuple(known if keep_columns is None else keep_columns),
        import_path=tuple(os.path.abspath(path) for path in sys.path),
        environment=current_store().environment,
    )
    return PredictionPlan(model, source, recipe, _new_folder(model, storage_path), **resources)


def require_function(predictor: str | None) -> None:
    """Raise an error if there is no such function, or if a form must not call it.

    Raises:
        InvalidArgumentError: that is so.
    """
    if predictor is not None:
        try:
            load_trainable(predictor, "predictor")
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from error


def _require_served(model: NamedModel) -> None:
    why = why_not_served(model.kind, model.location) if model.is_checkpoint else "it is no python_function"
    if why is not None:
        raise InvalidArgumentError(
            f"predictor: {model.title} is not a model that MLflow can predict with by itself: {why}. Name a function that is marked with "
            "@trainlib.trainable as module:function: it is called with the checkpoint, and returns what is called with each batch"
        )
    rooms.load(model.kind).require_installed()


def _require_input(model: NamedModel, source: Source) -> None:
    preprocessor = Checkpoint(model.location, trust=True).get_preprocessor()
    preprocessor = without_absent_labels(preprocessor, source.columns) if preprocessor is not None else None
    if preprocessor is None:
        return
    try:
        require_columns(preprocessor, source.columns, source.uri)
    except DataError as error:
        raise DataError(f"dataset: the rows are preprocessed as for {model.title}, and {error}") from error


def _new_folder(model: NamedModel, storage_path: str | None) -> str:
    """A folder that nobody has used, named after the model and the time."""
    try:
        root = storage.absolute(require_no_password(storage_path or str(storage.home() / "predictions")))
        storage.filesystem(root)
    except ValueError as error:
        raise InvalidArgumentError(f"storage_path: {error}") from error
    name = _NOT_IN_NAMES.sub("-", f"{model.name}-{model.version}" if model.name else model.model_id[:10])
    return storage.join(root, f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}")
