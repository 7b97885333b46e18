"""Predicts with a checkpoint of an estimator, also where trainlib is not installed.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_array, has_arrays, with_numbers, without_arrow
from trainlib._serving.preprocessing import unpickled

if TYPE_CHECKING:
    import pandas as pd

FILE = "model.pkl"


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can, or if only loading it would tell."""
    return None if Path(folder, FILE).exists() else f"it has no {FILE}: it was not saved as a SklearnCheckpoint"


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts with the estimator in a folder: its ``predict``.

    Columns that it was not fitted with, such as the label, are left out, if it knows its columns by name.

    Raises:
        ValueError: the estimator cannot predict.
    """
    estimator = unpickled(Path(folder, FILE))
    if not hasattr(estimator, "predict"):
        raise ValueError(f"this checkpoint cannot predict: {type(estimator).__name__} has no predict()")

    # Those of scikit-learn make numbers of None by themselves.
    wants_numbers = type(estimator).__module__.partition(".")[0] in ("lightgbm", "xgboost")

    def predict(rows: pd.DataFrame) -> Any:
        features = features_of(without_arrow(rows), getattr(estimator, "feature_names_in_", None))
        return estimator.predict(with_numbers(features) if wants_numbers and hasattr(features, "columns") else features)

    return predict


def features_of(rows: pd.DataFrame, names: Any) -> Any:
    """What an estimator takes: the column of arrays as one array, if there is one, else the columns that it was fitted with.

    Args:
        rows: The rows.
        names: The columns that it was fitted with, if it knows them.
    """
    if has_arrays(rows):
        return as_array(rows)
    if names is None:
        return rows
    if rows.columns.tolist() == [*range(len(names))]:  # they come without names, as an array
        return rows.set_axis(list(names), axis=1)
    if missing := [str(name) for name in names if name not in rows.columns]:
        raise ValueError(f"the rows lack the column {missing[0]!r}, which the estimator was fitted with")
    return rows[list(names)]
