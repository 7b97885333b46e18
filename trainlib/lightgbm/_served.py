"""Loads and calls a LightGBM model where there is no trainlib.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import with_numbers

if TYPE_CHECKING:
    import pandas as pd

FILE = "model.txt"


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can, or if only loading it would tell."""
    is_there = os.path.exists(os.path.join(folder, FILE))
    return None if is_there else f"it has no {FILE}: it was not saved as a LightGBMCheckpoint"


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts for rows that are preprocessed, from a checkpoint's folder.

    Raises:
        ValueError: there is no model in it.
    """
    import lightgbm

    if (problem := why_not(folder)) is not None:
        raise ValueError(f"this checkpoint cannot predict by itself: {problem}")
    booster = lightgbm.Booster(model_file=os.path.join(folder, FILE))

    def predict(rows: pd.DataFrame) -> Any:
        return booster.predict(in_numpy(with_numbers(features_of(rows, booster.feature_name()))))

    return predict


def in_numpy(features: pd.DataFrame) -> pd.DataFrame:
    """The same columns in memory of numpy's: LightGBM does not take Arrow's in a DataFrame, and Ray reads rows so."""
    import pandas as pd

    of_arrow = [name for name, kind in features.dtypes.items() if isinstance(kind, pd.ArrowDtype)]
    return features.astype(dict.fromkeys(of_arrow, "float64"))


def features_of(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The columns that a model was trained with, in its order. LightGBM itself would take them as they come.

    Args:
        rows: The rows. They may have other columns, such as the label.
        names: What LightGBM calls the columns. It puts ``_`` for spaces.

    Raises:
        ValueError: a column is missing.
    """
    columns = rows.columns.tolist()
    by_name = {**{str(each).replace(" ", "_"): each for each in columns}, **{str(each): each for each in columns}}
    missing = [name for name in names if name not in by_name]
    if not missing:
        return rows[[by_name[name] for name in names]]
    knows_names = names != [f"Column_{index}" for index in range(len(names))]
    if knows_names and columns != [*range(len(columns))]:
        raise ValueError(f"the rows lack the column {missing[0]!r}, which the model was trained with")
    if len(columns) != len(names):
        raise ValueError(f"the rows have {len(columns)} columns, but the model was trained with {len(names)}")
    return rows
