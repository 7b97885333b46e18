"""What becomes of reported metrics: points that MLflow accepts, one for each metric and iteration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainlib._registry.names import stored_name

if TYPE_CHECKING:
    from mlflow.entities import Metric

__all__ = ["MetricPoints"]


class MetricPoints:
    """Makes the points of a run. It remembers which there are, and what it has warned of."""

    def __init__(self, run_id: str, last_steps: Mapping[str, int]) -> None:
        """
        Args:
            run_id: The run.
            last_steps: The last iteration that each metric has a point of already. Up to there, no second one is made.
        """
        self._run_id = run_id
        self._last_steps = dict(last_steps)
        self._made_at: dict[str, float] = {}
        """When the last point of each metric was reported, if this process has made it."""
        self._not_finite: set[str] = set()
        self._renamed: set[str] = set()

    def of(
        self, iteration: int, metrics: Mapping[str, float], timestamp: float, *, again: bool = False
    ) -> tuple[list[Metric], list[str]]:
        """The points of an iteration, and what a person should know about them.

        Args:
            iteration: The iteration.
            metrics: Its metrics.
            timestamp: When they were reported, in seconds since 1970.
            again: Whether to make the same points a second time. Not those of an iteration that another attempt has reported.
        """
        from mlflow.entities import Metric

        points, warnings = [], []
        for name, value in metrics.items():
            key = stored_name(name)
            last = self._last_steps.get(key, -1)
            if last >= iteration and not (again and last == iteration and self._made_at.get(key) == timestamp):
                continue
            self._last_steps[key], self._made_at[key] = iteration, timestamp
            if key != name and name not in self._renamed:
                self._renamed.add(name)
                warnings.append(f"metric {name!r} is called {key!r} in MLflow, which does not accept its name")
            number = float(value)
            if not math.isfinite(number):
                if name not in self._not_finite:
                    hint = ". RunConfig.stop_on_nan ends such a training" if math.isnan(number) else ""
                    warnings.append(
                        f"metric {name!r} is {number} at iteration {iteration}; MLflow shows it as a gap{hint}"
                    )
                    self._not_finite.add(name)
                number = math.nan  # MLflow stores infinity as 1.8e308, which flattens the whole chart
            points.append(Metric(key, number, int(timestamp * 1000), iteration, run_id=self._run_id))
        return points, warnings
