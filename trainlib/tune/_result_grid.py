"""The results of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from trainlib._registry.params import flat
from trainlib.result import Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ResultGrid"]

Mode = Literal["max", "min"]


class ResultGrid(Sequence[Result]):
    """The results of all trials, in the order of their numbers. Failed trials are included, with their error.

    Example:
        >>> from trainlib import Result
        >>> from trainlib.tune import ResultGrid
        >>> grid = ResultGrid([Result(metrics={"loss": 0.3}), Result(metrics={"loss": 0.1})], metric="loss", mode="min")
        >>> len(grid), grid.get_best_result().metrics["loss"]
        (2, 0.1)
    """

    def __init__(
        self,
        results: Sequence[Result],
        *,
        metric: str | None = None,
        mode: Mode | None = None,
        run_id: str | None = None,
        run_url: str | None = None,
        flow_run_id: str | None = None,
    ) -> None:
        self._results = list(results)
        self._metric = metric
        self._mode = mode
        self.run_id = run_id
        """The sweep's own MLflow run, the parent of the trials' runs."""
        self.run_url = run_url
        """The page of that run in the MLflow UI."""
        self.flow_run_id = flow_run_id
        """The Prefect flow run."""

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: Any) -> Any:
        return self._results[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __repr__(self) -> str:
        return f"ResultGrid({len(self)} results, {self.num_errors} errors)"

    @property
    def errors(self) -> list[BaseException]:
        """The errors of the failed trials."""
        return [result.error for result in self._results if result.error is not None]

    @property
    def num_errors(self) -> int:
        """How many trials failed."""
        return len(self.errors)

    @property
    def num_terminated(self) -> int:
        """How many trials ended without an error, including those that were stopped early."""
        return len(self) - self.num_errors

    def get_best_result(
        self,
        metric: str | None = None,
        mode: Mode | None = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """The best trial's result. Failed trials count only if all of them failed.

        Args:
            metric: the metric to compare by. Default: as in TuneConfig.
            mode: ``max`` if a high value is better, else ``min``. Default: as in TuneConfig.
            scope: which value of a trial counts: the ``last`` one, the average (``avg``), the average of the last few
                (``last-5-avg``, ``last-10-avg``), or the best one (``all``).
            filter_nan_and_inf: whether to leave out trials without a finite value.

        Raises:
            ValueError: metric or mode is missing, or no trial has such a metric.
        """
        metric, mode = metric or self._metric, mode or self._mode
        if metric is None or mode is None:
            raise ValueError(
                "there is no metric and mode to compare by. Pass them, e.g. get_best_result('loss', 'min'), or set them in "
                "TuneConfig"
            )
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        scored = []
        for result in [result for result in self._results if result.error is None] or self._results:
            value = score_of(result, metric, mode, scope)
            if value is not None and not (filter_nan_and_inf and not math.isfinite(value)):
                scored.append((value, result))
        if not scored:
            reported = sorted({name for result in self._results for row in result.history for name in row})
            what = f"no trial reported a finite {metric!r}. They reported {', '.join(reported) or 'no metrics'}"
            raise ValueError(f"{what}; {self.num_errors} of {len(self)} failed")
        return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1]

    def get_dataframe(self, filter_metric: str | None = None, filter_mode: Mode | None = None) -> pd.DataFrame:
        """One row per trial: its last metrics, and its config in columns ``config/...``.

        With ``filter_metric`` and ``filter_mode``, the metrics of its best iteration.
        """
        import pandas as pd

        if (filter_metric is None) != (filter_mode is None):
            raise ValueError("filter_metric and filter_mode belong together: pass both, or neither")
        rows = []
        for result in self._results:
            metrics = dict(result.metrics or {})
            config = metrics.pop("config", {})
            if filter_metric is not None:
                having = [row for row in result.history if not math.isnan(row.get(filter_metric, math.nan))]
                if having:
                    pick = max if filter_mode == "max" else min
                    metrics.update(pick(having, key=lambda row: row[filter_metric]))
            rows.append(
                {**metrics, **{f"config/{key.replace('.', '/')}": value for key, value in flat(config).items()}}
            )
        return pd.DataFrame(rows)


def score_of(result: Result, metric: str, mode: str, scope: str) -> float | None:
    """The value that counts for a trial. None if it never reported the metric.

    Example:
        >>> result = Result(metrics={"loss": 3.0}, history=[{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}])
        >>> [score_of(result, "loss", "min", scope) for scope in ("last", "avg", "all")]
        [3.0, 2.0, 1.0]
    """
    values = [float(row[metric]) for row in result.history if metric in row]
    if not values:
        found = (result.metrics or {}).get(metric)
        return float(found) if found is not None else None
    match scope:
        case "last":
            return values[-1]
        case "avg":
            return fmean(values)
        case "last-5-avg":
            return fmean(values[-5:])
        case "last-10-avg":
            return fmean(values[-10:])
        case "all":
            numbers = [value for value in values if not math.isnan(value)] or values
            return max(numbers) if mode == "max" else min(numbers)
    raise ValueError(f"scope is {scope!r}: use last, avg, last-5-avg, last-10-avg or all")
