"""Loads and calls an XGBoost model where there is no trainlib."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandas as pd


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts for rows that are preprocessed, from a checkpoint's folder."""
    import xgboost

    names = ("model.ubj", "model.json")
    file = next(path for path in (os.path.join(folder, name) for name in names) if os.path.exists(path))
    booster = xgboost.Booster(model_file=file)

    def predict(rows: pd.DataFrame) -> Any:
        known = booster.feature_names
        features = rows[known] if known else rows
        return booster.predict(xgboost.DMatrix(features, enable_categorical=True))

    return predict
