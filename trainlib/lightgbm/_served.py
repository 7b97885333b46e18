"""Loads and calls a LightGBM model where there is no trainlib."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandas as pd


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts for rows that are preprocessed, from a checkpoint's folder."""
    import lightgbm

    booster = lightgbm.Booster(model_file=os.path.join(folder, "model.txt"))
    known = booster.feature_name()

    def predict(rows: pd.DataFrame) -> Any:
        features = rows[known] if set(known) <= set(rows.columns) else rows
        return booster.predict(features)

    return predict
