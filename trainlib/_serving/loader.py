"""Loads a model that trainlib has trained, in a process that need not have trainlib. MLflow calls it.

This file is copied beside the model, and imports only what is copied with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_frame
from trainlib._serving.preprocessing import preprocessor_in, without_absent_labels

if TYPE_CHECKING:
    import pandas as pd


class ServedModel:
    """A model with the preprocessor that was kept with it."""

    def __init__(self, folder: str, load: Callable[[str], Callable[[pd.DataFrame], Any]]) -> None:
        self._preprocessor = preprocessor_in(folder)
        self._predict = load(folder)

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """What the model predicts for some rows. The column with their labels may be missing.

        Args:
            model_input: The rows as they were before any preprocessing: a DataFrame, or what MLflow makes of a request.
            params: There are none.
        """
        rows: Any = as_frame(model_input)
        if self._preprocessor is not None:
            preprocessor = without_absent_labels(self._preprocessor, rows.columns)
            rows = preprocessor.transform_batch(rows) if preprocessor is not None else rows
        return self._predict(rows)


def _load_pyfunc(path: str) -> ServedModel:
    """MLflow's way to load a model: ``path`` is the folder of the checkpoint."""
    return ServedModel(path, importlib.import_module(f"{__name__}.model").load)
