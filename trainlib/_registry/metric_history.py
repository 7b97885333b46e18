"""The metrics that MLflow has of a run, read back as rows. Nothing else reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainlib._registry.metrics import is_about_data

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


@dataclass(frozen=True)
class MetricHistory:
    """The metrics of a run, by iteration."""

    rows: dict[int, dict[str, float]] = field(default_factory=dict)
    """What the training function reported in each iteration. Metrics about data are not here: their iterations are
    those in which an epoch was read, and may be ahead."""
    reported_at: dict[int, float] = field(default_factory=dict)
    """When each iteration was reported, in seconds since 1970."""
    last_steps: dict[str, int] = field(default_factory=dict)
    """The last iteration that each metric has a point of, metrics about data included."""

    @property
    def last_iteration(self) -> int:
        """The last iteration that was reported; 0 if there is none."""
        return max(self.rows, default=0)


def read_history(client: MlflowClient, run: Run) -> MetricHistory:
    """Read all metrics of a run."""
    history = MetricHistory()
    for name in run.data.metrics:
        for point in client.get_metric_history(run.info.run_id, name):
            history.last_steps[name] = max(history.last_steps.get(name, -1), point.step)
            if is_about_data(name):
                continue
            history.rows.setdefault(point.step, {})[name] = point.value
            history.reported_at.setdefault(point.step, point.timestamp / 1000)
    return history
