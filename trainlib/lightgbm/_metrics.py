"""Metrics over the rows of all workers. LightGBM measures on each worker's own rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.lightgbm import _sums as sums

if TYPE_CHECKING:
    from trainlib._boosting.table import LabelledTable

__all__ = ["MeanMetrics"]


class MeanMetrics:
    """The metrics of all ranks together, from what each of them has measured on its own rows.

    What is a mean over rows, or can be made of one, comes out as on one worker. Areas under curves are means of the ranks' own:
    those of ``auc`` by their pairs of a positive and a negative row.
    """

    def __init__(self, tables: Mapping[str, LabelledTable]) -> None:
        self._tables = tables
        self._weights = {name: _weight_of(table) for name, table in tables.items()}
        self._pairs = {name: _pairs_of(table) for name, table in tables.items()}
        self._spreads: dict[str, float] | None = None
        """The sum of squared differences from the mean label of all ranks, by dataset."""

    def over_ranks(self, results: Sequence[Any]) -> dict[str, float]:
        """The metrics of all ranks, as ``<dataset>-<metric>``, given this rank's own. All ranks have to call this."""
        if self._spreads is None:
            self._spreads = self._total_spreads() if any(metric == "r2" for _, metric, *_ in results) else {}
        shares: list[float] = []
        for dataset, metric, value, *_ in results:
            shares += self._share(dataset, metric, float(value))
        total = sums.add_up(shares)
        parts = zip(results, total[::2], total[1::2], strict=True)
        return {
            f"{dataset}-{metric}": _from_shares(metric, weight, part) for (dataset, metric, *_), weight, part in parts
        }

    def _share(self, dataset: str, metric: str, value: float) -> tuple[float, float]:
        """What this rank adds to the weight of a metric, and to what is divided by it."""
        weight = self._weights[dataset]
        match metric:
            case "gamma_deviance":  # the one that LightGBM adds up over rows
                return 1.0 / session.get_world_size(), value
            case "r2":
                assert self._spreads is not None
                own = _spread(*_moments_of(self._tables[dataset]))
                # Where all labels of a rank are equal, its own value does not tell how far off the model is.
                unexplained = (1.0 - value) * own if own > 0 else math.nan
                return self._spreads[dataset] / session.get_world_size(), unexplained
            case "rmse":
                value = value * value
            case "auc":
                weight = self._pairs[dataset]
            case "cross_entropy_lambda":  # in which weights are part of the loss
                weight = float(self._tables[dataset].rows)
        return weight, weight * value if weight else 0.0

    def _total_spreads(self) -> dict[str, float]:
        totals = {name: sums.add_up(_moments_of(table)) for name, table in self._tables.items()}
        return {name: _spread(*total) for name, total in totals.items()}


def _from_shares(metric: str, weight: float, part: float) -> float:
    if not weight:
        return math.nan
    mean = part / weight
    return math.sqrt(mean) if metric == "rmse" else 1.0 - mean if metric == "r2" else mean


def _moments_of(table: LabelledTable) -> tuple[float, float, float]:
    """The sums of the weights, of the labels and of their squares."""
    import numpy as np

    labels = table.labels.astype("float64")
    weights = table.columns.get("weight", np.ones(table.rows)).astype("float64")
    return float(weights.sum()), float((weights * labels).sum()), float((weights * labels**2).sum())


def _spread(weight: float, labels: float, squares: float) -> float:
    return squares - labels * labels / weight if weight else 0.0


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
