"""Metrics over the rows of all workers. LightGBM measures on each worker's own rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib.lightgbm import _sums as sums

if TYPE_CHECKING:
    from trainlib._boosting.table import LabelledTable

__all__ = ["MeanMetrics"]


class MeanMetrics:
    """Means of the ranks' metrics, by their rows, or by the weights of their rows.

    What is a mean over rows comes out as on one worker. Ranks' areas under curves are weighted with their pairs of a positive and a
    negative row.
    """

    def __init__(self, tables: Mapping[str, LabelledTable]) -> None:
        self._weights = {name: _weight_of(table) for name, table in tables.items()}
        self._pairs = {name: _pairs_of(table) for name, table in tables.items()}

    def over_ranks(self, results: Sequence[Any]) -> dict[str, float]:
        """The metrics of all ranks, as ``<dataset>-<metric>``, given this rank's own. All ranks have to call this."""
        shares = []
        for dataset, metric, value, *_ in results:
            weight = self._pairs[dataset] if metric == "auc" else self._weights[dataset]
            shares += [weight, weight * _as_mean(metric, float(value)) if weight else 0.0]
        total = sums.add_up(shares)
        means = [part / weight if weight else math.nan for weight, part in zip(total[::2], total[1::2], strict=True)]
        return {
            f"{dataset}-{metric}": _from_mean(metric, mean)
            for (dataset, metric, *_), mean in zip(results, means, strict=True)
        }


def _as_mean(metric: str, value: float) -> float:
    return value * value if metric == "rmse" else value


def _from_mean(metric: str, value: float) -> float:
    return math.sqrt(value) if metric == "rmse" else value


def _weight_of(table: LabelledTable) -> float:
    weights = table.columns.get("weight")
    return float(weights.sum()) if weights is not None else float(table.rows)


def _pairs_of(table: LabelledTable) -> float:
    weights = table.columns.get("weight")
    is_positive = table.labels > 0
    if weights is None:
        positive = float(is_positive.sum())
        return positive * (table.rows - positive)
    return float(weights[is_positive].sum()) * float(weights[~is_positive].sum())
