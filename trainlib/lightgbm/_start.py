"""The score that all rows start from: what the mean of all labels says.

By itself, each rank of LightGBM takes the mean of its own rows, and starts from the mean of what the ranks have found. For many objectives
that is another score: the mean of logarithms is not the logarithm of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainlib.lightgbm._objectives import objective_of
from trainlib.lightgbm._params import is_forest, is_on
from trainlib.lightgbm._sums import add_up

if TYPE_CHECKING:
    import lightgbm

    from trainlib._boosting.exchange import ExchangeBytes
    from trainlib._boosting.table import LabelledTable

__all__ = ["add_to_first_tree", "common_start", "starts_from_transformed_mean"]

_LEAST = 1e-15


def _identity(mean: float) -> float:
    return mean


def _log(mean: float) -> float:
    return math.log(max(mean, _LEAST))


def _logit(mean: float) -> float:
    mean = min(max(mean, _LEAST), 1 - _LEAST)
    return math.log(mean / (1 - mean))


def _log_expm1(mean: float) -> float:
    return math.log(math.expm1(max(mean, _LEAST)))


_OF_ROOTS = (
    *("regression", "regression_l2", "l2", "mean_squared_error", "mse"),
    *("l2_root", "root_mean_squared_error", "rmse", "fair"),
)
"""The objectives that learn the roots of labels with ``reg_sqrt``. LightGBM ignores it for the others."""
_SCORES: dict[Callable[[float], float], tuple[str, ...]] = {
    _identity: (*_OF_ROOTS, "huber"),
    _log: ("poisson", "gamma", "tweedie"),
    _logit: ("cross_entropy", "xentropy"),
    _log_expm1: ("cross_entropy_lambda", "xentlambda"),
}
_SCORE_OF = {objective: score for score, objectives in _SCORES.items() for objective in objectives}
"""The score that says a mean, by objective. The classifying ones are missing: LightGBM adds up their labels over the ranks by itself."""


def starts_from_transformed_mean(params: Mapping[str, Any]) -> bool:
    """Whether an objective starts from another score than the mean of the labels itself.

    Example:
        >>> starts_from_transformed_mean({"objective": "poisson"}), starts_from_transformed_mean({})
        (True, False)
    """
    return _SCORE_OF.get(objective_of(dict(params)), _identity) is not _identity


def common_start(params: Mapping[str, Any], table: LabelledTable, exchange: ExchangeBytes) -> float | None:
    """The score that rows start from, the same on all ranks, which all have to call this. None: LightGBM finds it by itself.

    Args:
        params: LightGBM's parameters.
        table: This rank's rows of ``train``.
        exchange: Brings the ranks' sums together.
    """
    import numpy as np

    given = dict(params)
    objective = objective_of(given)
    score = _SCORE_OF.get(objective)
    if (
        score is None
        or is_forest(given)
        or "init_score" in table.columns
        or not is_on(given, "boost_from_average", True)
    ):
        return None
    labels = table.labels.astype("float64")
    if objective in _OF_ROOTS and is_on(given, "reg_sqrt", False):
        labels = np.sign(labels) * np.sqrt(np.abs(labels))
    weights = table.columns.get("weight", np.ones(table.rows)).astype("float64")
    weight, total = add_up([float(weights.sum()), float((weights * labels).sum())], exchange)
    return score(total / weight) if weight else None


def add_to_first_tree(model: lightgbm.Booster, start: float) -> None:
    """Let a model of one round predict with the score that its rows have started from, as LightGBM's own does."""
    leaves = model.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]
    for leaf in range(leaves):
        model.set_leaf_output(0, leaf, model.get_leaf_output(0, leaf) + start)
