"""The results of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from trainlib._execution.reported import as_number
from trainlib._flat import flattened
from trainlib._registry.params import flat
from trainlib.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
        trials_url: str | None = None,
        flow_run_id: str | None = None,
    ) -> None:
        self._results = list(results)
        self.metric = metric
        """What trials are compared by, if TuneConfig says so."""
        self.mode = mode
        """``max`` if a high value of it is better, else ``min``."""
        self.run_id = run_id
        """The sweep's own MLflow run, the parent of the trials' runs."""
        self.run_url = run_url
        """The page of that run in the MLflow UI. Its description has a table of the trials, the best first."""
        self.trials_url = trials_url
        """The trials in MLflow's table of runs, the best first, with the metric and what was searched as columns."""
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
        """The best trial's result. Failed trials count only if all of them failed, and one that a limit of RunConfig ended
        because it diverged, or its metric was NaN, never does.

        Args:
            metric: the metric to compare by. Default: as in TuneConfig.
            mode: ``max`` if a high value is better, else ``min``. Default: as in TuneConfig.
            scope: which value of a trial counts: the ``last`` one, the average (``avg``), the average of the last few
                (``last-5-avg``, ``last-10-avg``), or the best one (``all``).
            filter_nan_and_inf: whether to leave out trials without a finite value.

        Raises:
            ValueError: metric or mode is missing, or no trial has such a metric.
        """
        metric, mode = metric or self.metric, mode or self.mode
        if metric is None or mode is None:
            raise ValueError(
                "there is no metric and mode to compare by. Pass them, e.g. get_best_result('loss', 'min'), or set them in "
                "TuneConfig"
            )
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        scored = []
        sound = [each for each in self._results if each.stopped is None or not each.stopped.reason.is_divergence]
        for result in [result for result in sound if result.error is None] or sound:
            value = score_of(result, metric, mode, scope)
            if value is not None and not (filter_nan_and_inf and not math.isfinite(value)):
                scored.append((value, result))
        if not scored:
            reported = sorted({name for result in self._results for row in result.history for name in row})
            what = f"no trial reported a finite {metric!r}. They reported {', '.join(reported) or 'no metrics'}"
            diverged = f", {len(self) - len(sound)} diverged" if len(sound) < len(self) else ""
            raise ValueError(f"{what}; {self.num_errors} of {len(self)} failed{diverged}")
        return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1]

    def plot(self, metric: str | None = None, mode: Mode | None = None, ax: Axes | None = None) -> Axes:
        """Draw how a metric went in each trial, the best one on top. A notebook shows it.

        Args:
            metric: which one. Default: as in TuneConfig, or else the first one that was reported.
            mode: ``max`` if a high value is better, else ``min``. Default: as in TuneConfig.
            ax: where to draw. Default: a new figure.

        Raises:
            ValueError: no trial reported a finite value of it.
            ImportError: matplotlib is not installed.
        """
        from trainlib._drawing.plots import plot_grid

        return plot_grid(self, metric, mode, ax)

    def _repr_html_(self) -> str:
        from trainlib._drawing.html import html_of_grid

        return html_of_grid(self)

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
            metrics = flattened(metrics)
            if filter_metric is not None:
                metrics.update(_best_row(result, filter_metric, filter_mode))
            rows.append(
                {**metrics, **{f"config/{key.replace('.', '/')}": value for key, value in flat(config).items()}}
            )
        return pd.DataFrame(rows)


def _best_row(result: Result, metric: str, mode: Mode | None) -> dict[str, Any]:
    """The row of a trial's best iteration; empty if the metric was never a number."""
    scored = [(number, row) for row in result.history if (number := as_number(row.get(metric))) is not None]
    scored = [(number, row) for number, row in scored if not math.isnan(number)]
    return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1] if scored else {}


def score_of(result: Result, metric: str, mode: str, scope: str) -> float | None:
    """The value that counts for a trial. None if it never reported the metric.

    Example:
        >>> result = Result(metrics={"loss": 3.0}, history=[{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}])
        >>> [score_of(result, "loss", "min", scope) for scope in ("last", "avg", "all")]
        [3.0, 2.0, 1.0]
    """
    values = [number for row in result.history if (number := as_number(row.get(metric))) is not None]
    if not values:
        return as_number(flattened(result.metrics or {}).get(metric))
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
