"""Reports every round of ``xgboost.train``. Imports xgboost, so it is imported in workers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xgboost

from trainlib._boosting.early_stopping import Score
from trainlib._boosting.rounds import Rounds
from trainlib.xgboost._checkpoint import XGBoostCheckpoint
from trainlib.xgboost._served import MISSING

__all__ = ["ReportRounds", "newest"]

_HIGHER_IS_BETTER = ("auc", "aucpr", "pre", "map", "ndcg")


class ReportRounds(xgboost.callback.TrainingCallback):
    """Reports the metrics of each dataset as ``<dataset>-<metric>``, and saves the model when that is due.

    Early stopping judges, as XGBoost's own does, by the last metric of the last dataset, which all ranks have measured together.

    Args:
        rounds: Counts them.
        missing: What stands for a missing value in the rows of ``train``, if something else than NaN does. The model keeps it for rows
            that it is served with.
        names: What the datasets are called, by the names that XGBoost was given. Default: the same.
    """

    def __init__(self, rounds: Rounds, missing: float | None = None, *, names: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._rounds = rounds
        self._names = names or {}
        self._missing = missing

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        metrics = newest({self._names.get(name, name): measured for name, measured in evals_log.items()})
        scores = [Score(name, float(value), _higher_is_better(name)) for name, value in list(metrics.items())[-1:]]
        is_last = self._rounds.end_round(scores)
        best = self._rounds.early_stopping if is_last else None
        # A model that the training goes on from may have those of its own training. One that is saved before the end is measured, and
        # predicts, with all of its rounds.
        model.set_attr(
            best_iteration=str(best.best_round - 1) if best is not None else None,  # which counts from 0
            best_score=str(best.best_value(scores[0].name)) if best is not None else None,
            **{MISSING: str(float(self._missing)) if self._missing is not None else None},
        )
        self._rounds.report(metrics, lambda: XGBoostCheckpoint.from_model(model))
        return is_last


def newest(evals_log: Any) -> dict[str, Any]:
    """The metrics of the last round, as ``<dataset>-<metric>``, from those of all rounds."""
    return {
        f"{dataset}-{metric}": values[-1]
        for dataset, by_metric in evals_log.items()
        for metric, values in by_metric.items()
    }


def _higher_is_better(name: str) -> bool:
    """Whether a metric is, given its dataset and it, e.g. ``valid-ndcg@5-``: with a dash at the end, queries without hits count as 0."""
    metric = name.rstrip("-").rpartition("-")[2].partition("@")[0]
    return metric in _HIGHER_IS_BETTER
