"""Loads and calls an XGBoost model where there is no trainlib.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import with_numbers

if TYPE_CHECKING:
    import pandas as pd

FILES = ("model.ubj", "model.json")
MISSING = "trainlib_missing"
"""The model's attribute that says what stood for missing values in training, if something else than NaN did."""


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can, or if only loading it would tell."""
    return None if _files_in(folder) else f"it has no {FILES[0]}: it was not saved as an XGBoostCheckpoint"


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts for rows that are preprocessed, from a checkpoint's folder.

    A model whose training was stopped early predicts with its best round.

    Raises:
        ValueError: there is no model in it.
    """
    import xgboost

    if (problem := why_not(folder)) is not None:
        raise ValueError(f"this checkpoint cannot predict by itself: {problem}")
    booster = xgboost.Booster(model_file=_files_in(folder)[0])
    best = booster.attr("best_iteration")
    rounds = (0, int(best) + 1) if best is not None else (0, 0)  # which are all
    missing = float(booster.attr(MISSING) or "nan")
    names, categories = list(booster.feature_names or ()) or None, categories_of(booster)

    def predict(rows: pd.DataFrame) -> Any:
        features = with_numbers(features_of(rows, names, booster.num_features()))
        coded = {name: in_categories(features[name], known) for name, known in categories.items()}
        matrix = xgboost.DMatrix(features.assign(**coded), missing=missing, enable_categorical=True)
        return booster.predict(matrix, iteration_range=rounds)

    return predict


def features_of(rows: pd.DataFrame, names: list[str] | None, width: int) -> pd.DataFrame:
    """The columns that a model was trained with, in its order, and under its names.

    Args:
        rows: The rows. They may have other columns, such as the label.
        names: The names, if the model knows them.
        width: How many columns the model takes.

    Raises:
        ValueError: a column is missing.
    """
    columns = rows.columns.tolist()
    by_name = {str(each): each for each in columns}
    missing = [name for name in names or () if name not in by_name]
    if names and not missing:
        return rows[[by_name[name] for name in names]].set_axis(names, axis=1)
    if names and columns != [*range(len(columns))]:
        raise ValueError(f"the rows lack the column {missing[0]!r}, which the model was trained with")
    if len(columns) != width:
        raise ValueError(f"the rows have {len(columns)} columns, but the model was trained with {width}")
    return rows.set_axis(names, axis=1) if names else rows


def in_categories(column: pd.Series[Any], known: pd.Series[Any] | None) -> Any:
    """A column of categories, in the codes of the training. XGBoost itself may take an unknown text for a known one.

    Args:
        column: The values. They may be text, as in a request.
        known: All categories, in the order of their codes. None if the model does not know them: the values are codes then.

    Raises:
        ValueError: a value is none of them.
    """
    import pandas as pd

    if known is None:
        if not pd.api.types.is_numeric_dtype(column.dtype):
            raise ValueError(
                f"the column {column.name!r} has no numbers, and the model does not know its categories. Pass their codes"
            )
        return column
    unknown = column[column.notna() & ~column.isin(known)]
    if len(unknown):
        listed = ", ".join(map(repr, known.tolist()))
        raise ValueError(
            f"the column {column.name!r} has {unknown.iloc[0]!r}, which the model was not trained with. It knows {listed[:500]}. "
            "Pass one of them, or a missing value"
        )
    return pd.Categorical(column, categories=known)


def categories_of(booster: Any) -> dict[str, pd.Series[Any] | None]:
    """What the model's columns of categories may contain, by name. XGBoost has kept that since 3.1."""
    names, types = booster.feature_names or [], booster.feature_types or []
    found: dict[str, pd.Series[Any] | None] = {
        name: None for name, kind in zip(names, types, strict=False) if kind == "c"
    }
    if found and hasattr(booster, "get_categories"):
        kept = booster.get_categories(export_to_arrow=True).to_arrow()
        found |= {name: values.to_pandas() for name, values in kept if values is not None}
    return found


def _files_in(folder: str) -> list[str]:
    return [path for path in (os.path.join(folder, name) for name in FILES) if os.path.exists(path)]
