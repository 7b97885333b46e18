"""Reports every round of ``xgboost.train``. Imports xgboost, so it is imported in workers only."""

from __future__ import annotations

from typing import Any

import xgboost

from trainlib._boosting.rounds import Rounds
from trainlib.xgboost._checkpoint import XGBoostCheckpoint

__all__ = ["ReportRounds"]


class ReportRounds(xgboost.callback.TrainingCallback):
    """Reports the metrics of each dataset as ``<dataset>-<metric>``, and saves the model when that is due."""

    def __init__(self, rounds: Rounds) -> None:
        super().__init__()
        self._rounds = rounds

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        metrics = {
            f"{dataset}-{metric}": values[-1]
            for dataset, by_metric in evals_log.items()
            for metric, values in by_metric.items()
        }
        self._rounds.report(metrics, lambda: XGBoostCheckpoint.from_model(model))
        return False
