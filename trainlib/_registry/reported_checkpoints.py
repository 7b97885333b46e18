"""Which checkpoint a point was reported with: MLflow lists the point with that checkpoint's logged model too."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from trainlib._registry.metrics import is_about_data
from trainlib._registry.patience import Patience
from trainlib._registry.retention import SavedCheckpoint

if TYPE_CHECKING:
    from mlflow.entities import Metric

__all__ = ["ReportedCheckpoints"]


class ReportedCheckpoints:
    """The checkpoints that points belong to, by iteration, until the points are written."""

    def __init__(self, run_id: str, patience: Patience) -> None:
        self._run_id = run_id
        self._patience = patience
        self._by_iteration: dict[int, Future[SavedCheckpoint]] = {}

    def add(self, iteration: int, checkpoint: Future[SavedCheckpoint]) -> None:
        """A checkpoint was reported with an iteration. MLflow knows it once the future has a value."""
        self._by_iteration[iteration] = checkpoint

    def linked(self, points: Iterable[Metric]) -> tuple[Metric, ...]:
        """The points, each with the logged model of its checkpoint.

        Raises:
            TimeoutError: MLflow is away, and does not know a checkpoint yet.
        """
        return tuple(self._linked(point) for point in points) if self._by_iteration else tuple(points)

    def written(self, points: Iterable[Metric]) -> None:
        """Forget the checkpoints before the last of these points. The rest of its iteration may come next."""
        reached = max((point.step for point in points if not is_about_data(point.key)), default=-1)
        self._by_iteration = {step: each for step, each in self._by_iteration.items() if step >= reached}

    def _linked(self, point: Metric) -> Metric:
        from mlflow.entities import Metric

        model_id = self._model_of(point)
        return Metric(point.key, point.value, point.timestamp, point.step, model_id=model_id, run_id=self._run_id)

    def _model_of(self, point: Metric) -> str | None:
        checkpoint = self._by_iteration.get(point.step)
        if checkpoint is None or is_about_data(point.key):
            return None
        while not checkpoint.done():
            if self._patience.is_waiting:
                raise TimeoutError("MLflow does not know the checkpoint yet")
            concurrent.futures.wait([checkpoint], timeout=0.1)
        return checkpoint.result().model_id if checkpoint.exception() is None else None
