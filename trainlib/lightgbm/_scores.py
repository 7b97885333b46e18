"""Scores that rows start from. Imports lightgbm, so it is imported in workers only."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

__all__ = ["DatasetWithScores"]


class DatasetWithScores(lightgbm.Dataset):
    """A Dataset for a training that goes on from a model, whose rows have scores of their own as well.

    LightGBM would put the model's scores in their place. Here they are added: the trees of the model were trained on top of them.

    Args:
        data: The rows.
        scores: The rows' own scores.
        more: Other arguments of a Dataset.
    """

    def __init__(self, data: Any, *args: Any, scores: np.ndarray, **more: Any) -> None:
        super().__init__(data, *args, **more)
        self._scores = scores

    def set_init_score(self, init_score: Any) -> lightgbm.Dataset:
        """LightGBM has found the model's scores."""
        return super().set_init_score(np.asarray(init_score, "float64") + self._scores)
