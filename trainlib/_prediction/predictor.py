"""What predicts, batch by batch, in each worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainlib._ray_objects import kind_of
from trainlib._rooms import checkpoint_class
from trainlib._serving.checkpoints import loader_of
from trainlib._serving.preprocessing import without_absent_labels
from trainlib._trainable import import_function
from trainlib.checkpoint import Checkpoint
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["BatchPredictor", "Recipe", "as_columns", "beside", "renamed"]

PREDICTION = "prediction"
"""The column of predictions that have no name of their own."""


@dataclass(frozen=True)
class Recipe:
    """What a worker needs to predict."""

    location: str
    """The folder of the checkpoint, or what MLflow loads."""
    is_checkpoint: bool
    kind: str
    """The framework whose class the checkpoint was reported as, such as ``torch``."""
    function: str | None
    """``module:function``. It is called with the checkpoint, or with MLflow's model. None: the model predicts by itself."""
    is_served: bool
    """Whether the checkpoint's own room predicts."""
    preprocess: bool
    kept_columns: tuple[str, ...]
    import_path: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables by which the files are reached, with credentials."""


class BatchPredictor:
    """Loads a model once, and predicts with it batch by batch. Ray makes one in each worker."""

    def __init__(self, recipe: Recipe) -> None:
        os.environ.update(recipe.environment)
        sys.path.extend(path for path in recipe.import_path if path not in sys.path)
        self._kept = list(recipe.kept_columns)
        self._is_own = recipe.function is not None
        self._preprocessor = None
        model: Any
        if recipe.is_checkpoint:
            model = checkpoint_class(recipe.kind)(
                recipe.location, trust=True
            )  # a training of this registry has written it
            self._preprocessor = model.get_preprocessor() if recipe.preprocess else None
        if recipe.is_served:
            with model.as_directory() as folder:
                self._predict = loader_of(recipe.kind)(folder)
            return
        if recipe.function is None or not recipe.is_checkpoint:
            model = _pyfunc(recipe)
        self._predict = import_function(recipe.function)(model) if recipe.function is not None else model.predict

    def __call__(self, batch: pd.DataFrame) -> pd.DataFrame:
        kept = batch[self._kept].copy()
        rows: Any = batch.copy()  # Ray's batches must not be changed, and some preprocessors change theirs
        if self._preprocessor is not None:
            preprocessor = without_absent_labels(self._preprocessor, batch.columns)
            rows = preprocessor.transform_batch(rows) if preprocessor is not None else rows
        who = "predictor" if self._is_own else "model"
        columns = as_columns(self._predict(rows), len(batch), who)
        return beside(kept, columns if self._is_own else renamed(columns, self._kept), who)


def _pyfunc(recipe: Recipe) -> Any:
    from mlflow import pyfunc

    if not recipe.is_checkpoint:
        return pyfunc.load_model(recipe.location)
    with Checkpoint(recipe.location, trust=True).as_directory() as folder:
        return pyfunc.load_model(folder)


def as_columns(predicted: Any, rows: int, who: str = "predictor") -> pd.DataFrame:
    """What was predicted for a batch, as columns.

    Args:
        predicted: A DataFrame, a dict of columns, or an array or a list with one row for each row of the batch. A row that is itself
            an array of several dimensions, or of another length than the others, becomes a list in one column.
        rows: How many rows the batch has.
        who: What has predicted, for errors.

    Raises:
        InvalidArgumentError: it has another number of rows, or is something else.

    Example:
        >>> as_columns([7, 1], 2)["prediction"].tolist(), list(as_columns([[0.2, 0.8]], 1).columns)
        ([7, 1], ['prediction_0', 'prediction_1'])
        >>> as_columns([[0.2], [0.5, 0.5]], 2)["prediction"].tolist()
        [[0.2], [0.5, 0.5]]
    """
    import numpy as np
    import pandas as pd

    if isinstance(predicted, pd.DataFrame):
        columns = predicted.reset_index(drop=True)
    elif isinstance(predicted, Mapping):
        columns = pd.DataFrame({name: np.asarray(values).tolist() for name, values in predicted.items()})
    else:
        array = _as_array(predicted)
        if array.ndim == 0:
            raise InvalidArgumentError(
                f"the {who} returned {kind_of(predicted)}. Return a DataFrame, a dict of columns, or an array with one row for each row "
                "of the batch"
            )
        if array.ndim == 2:
            names = [f"{PREDICTION}_{index}" for index in range(array.shape[1])]
            columns = pd.DataFrame(array.reshape(len(array), -1), columns=names)
        else:
            columns = pd.DataFrame({PREDICTION: array if array.ndim == 1 else array.tolist()})
    if len(columns) != rows:
        raise InvalidArgumentError(f"the {who} returned {len(columns)} rows for a batch of {rows}: return one for each")
    return columns


def _as_array(predicted: Any) -> np.ndarray:
    import numpy as np

    try:
        return np.asarray(predicted)
    except ValueError:  # its rows differ in length
        column = np.empty(len(predicted), object)
        column[:] = list(predicted)
        return column


def renamed(predicted: pd.DataFrame, kept: Iterable[str]) -> pd.DataFrame:
    """Predictions of a model under names that the dataset does not have: a classifier's ``label`` is ``prediction_label`` beside another.

    Who writes a function chooses the names, but nobody can choose those of a model.
    """
    there = set(kept)
    return predicted.rename(
        columns={
            name: f"{PREDICTION}_{name}"
            for name in predicted.columns
            if name in there and not str(name).startswith(PREDICTION)
        }
    )


def beside(kept: pd.DataFrame, predicted: pd.DataFrame, who: str = "predictor") -> pd.DataFrame:
    """Columns of the dataset, and the predictions to their right.

    Raises:
        InvalidArgumentError: a column is in both.
    """
    import pandas as pd

    if both := [name for name in predicted.columns if name in kept.columns]:
        raise InvalidArgumentError(
            f"the dataset has a column {both[0]!r}, and the {who} returned one, too. Leave it out of keep_columns"
        )
    return pd.concat([kept.reset_index(drop=True), predicted], axis=1)
