"""The metrics that MLflow has of a run, read back as rows. Nothing else reads them."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING

from trainlib._registry.metrics import is_about_data

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run


@dataclass(frozen=True)
class Curve:
    """The points of one metric, by iteration: 24 bytes each, where an object for each would take some hundred."""

    steps: array[int]
    values: array[float]
    times: array[float]
    """When each was reported, in seconds since 1970."""

    @classmethod
    def of(cls, points: Iterable[Metric]) -> Curve:
        """A curve of MLflow's points. Of two for one iteration, the later one counts."""
        by_step = {point.step: (point.value, point.timestamp / 1000) for point in points}
        steps = array("q", sorted(by_step))
        return cls(
            steps, array("d", (by_step[step][0] for step in steps)), array("d", (by_step[step][1] for step in steps))
        )

    def points(self) -> Iterator[tuple[int, float, float]]:
        """Each iteration with its value, and when it was reported."""
        return zip(self.steps, self.values, self.times, strict=True)


@dataclass(frozen=True)
class MetricHistory:
    """The metrics of a run."""

    curves: dict[str, Curve] = field(default_factory=dict)
    """Each metric's, by the name that it has in MLflow. Metrics about data are not here: their iterations are those in
    which an epoch was read, and may be ahead."""
    last_steps: dict[str, int] = field(default_factory=dict)
    """The last iteration that each metric has a point of, metrics about data included."""

    def rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        """What the training function reported in each iteration, in order."""
        curves = self.curves.items()
        points = heapq.merge(*(zip(curve.steps, repeat(name), curve.values) for name, curve in curves), key=_step)
        for step, together in groupby(points, key=_step):
            yield step, {name: value for _, name, value in together}

    def reported_at(self) -> dict[int, float]:
        """When each iteration was reported, in seconds since 1970."""
        reported: dict[int, float] = {}
        for curve in self.curves.values():
            for step, _, moment in curve.points():
                reported.setdefault(step, moment)
        return reported

    @property
    def last_iteration(self) -> int:
        """The last iteration that was reported; 0 if there is none."""
        return max((curve.steps[-1] for curve in self.curves.values() if curve.steps), default=0)


_step = itemgetter(0)


def read_history(client: MlflowClient, run: Run) -> MetricHistory:
    """Read all metrics of a run."""
    history = MetricHistory()
    for name in run.data.metrics:
        curve = Curve.of(client.get_metric_history(run.info.run_id, name))
        history.last_steps[name] = curve.steps[-1] if curve.steps else -1
        if not is_about_data(name):
            history.curves[name] = curve
    return history
