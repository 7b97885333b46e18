"""The one writer of a training's metrics: batched, in order, one point for each metric and iteration.

Params and tags that can wait a moment go with the next batch: each call of MLflow costs as much as a short trial.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

BATCH = 1000  # MLflow's own limit for one call
_NOTES_AT_ONCE = 100  # likewise, of params and of tags
GATHER_S = 0.25
RETRY_S = 2.0
GIVE_UP_S = 30.0
_LONGEST_PARAM = 6000
_LONGEST_NAME = 250

_NOT_IN_A_NAME = re.compile(r"[^\w\-./: ]")


ABOUT_DATA = "data/"


def stored_name(name: str) -> str:
    """How MLflow has a metric or a param: it takes few characters.

    Example:
        >>> stored_name("recall@10")
        'recall_10'
    """
    return _NOT_IN_A_NAME.sub("_", name)[:_LONGEST_NAME]


def stored_params(params: Mapping[str, Any]) -> list[Param]:
    """Params as MLflow takes them. Of those whose names become the same, the last one counts."""
    from mlflow.entities import Param

    texts = {stored_name(key): str(value)[:_LONGEST_PARAM] for key, value in params.items()}
    return [Param(key, text) for key, text in texts.items()]


# So many workers have a chart each; of more, the least and the most are told.
_RANKS_SHOWN = 8


def rows_read(dataset: str, rows: list[int], *, is_split: bool) -> dict[str, float]:
    """An epoch of a dataset as metrics; ``rows`` are those of each rank.

    Example:
        >>> rows_read("train", [50, 49], is_split=True)
        {'data/train/rows': 99, 'data/train/rows_rank_0': 50, 'data/train/rows_rank_1': 49}
        >>> rows_read("validation", [10, 10], is_split=False)
        {'data/validation/rows': 10}
    """
    name = f"{ABOUT_DATA}{dataset}/rows"
    if not is_split:
        return {name: max(rows)}
    if len(rows) > _RANKS_SHOWN:
        return {name: sum(rows), f"{name}_least": min(rows), f"{name}_most": max(rows)}
    return {name: sum(rows), **{f"{name}_rank_{rank}": each for rank, each in enumerate(rows)}}


def is_about_data(key: str) -> bool:
    """Whether a metric is one of those that no training function reported."""
    return key.startswith(ABOUT_DATA)


class MetricWriter:
    """Writes points behind the training. Points that MLflow does not take now are kept and tried again."""

    def __init__(self, client: MlflowClient, run_id: str, *, last_steps: dict[str, int], unsaved: Path) -> None:
        """``last_steps`` tells how far each metric was written before: what is repeated leaves no second point."""
        self._client = client
        self._run_id = run_id
        self._last_steps = dict(last_steps)
        self._unsaved = unsaved
        self._points: list[Metric] = []
        self._params: list[Param] = []
        self._tags: list[RunTag] = []
        self._changed = threading.Condition()
        self._queued = 0
        self._written = 0
        self._flushing = 0
        self._closed = False
        self._error: Exception | None = None
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="metric-writer", daemon=True)
        self._thread.start()

    def write(
        self,
        iteration: int,
        metrics: dict[str, float],
        timestamp: float,
        *,
        model_id: str | None = None,
        warn: Callable[[str], None],
    ) -> None:
        """Queue the metrics of an iteration; returns at once."""
        from mlflow.entities import Metric

        points = []
        for name, value in metrics.items():
            key = stored_name(name)
            if self._last_steps.get(key, -1) >= iteration:
                continue
            self._last_steps[key] = iteration
            number = float(value)
            if not math.isfinite(number):
                if name not in self._told:
                    warn(f"metric {name!r} is {number} at iteration {iteration}; MLflow shows it as a gap")
                    self._told.add(name)
                number = math.nan  # MLflow stores infinity as 1.8e308, which flattens the whole chart
            points.append(Metric(key, number, int(timestamp * 1000), iteration, model_id=model_id, run_id=self._run_id))
        with self._changed:
            self._points += points
            self._queued += len(points)
            self._changed.notify_all()

    def note(self, params: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None) -> None:
        """Queue params and tags; they are written with the points that come next, or at :meth:`flush`."""
        from mlflow.entities import RunTag

        with self._changed:
            new = stored_params(params or {})
            self._params += new
            self._tags += [RunTag(key, value) for key, value in (tags or {}).items()]
            self._queued += len(new) + len(tags or ())

    def flush(self) -> None:
        """Return when all that has been queued until now is written; what comes meanwhile is not waited for."""
        with self._changed:
            upto = self._queued
            self._flushing += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._written >= upto or self._error is not None)
            finally:
                self._flushing -= 1
            if self._error is not None:
                raise self._error

    def close(self) -> None:
        """Write what is left, and end.

        Raises:
            ConnectionFailedError: MLflow did not take it; the points are in a file then.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        failing_since: float | None = None
        while True:
            with self._changed:
                while not self._points and not self._closed and not (self._flushing and self._waiting()):
                    self._changed.wait()
                if not self._waiting():
                    return
                self._changed.wait_for(
                    lambda: self._flushing or self._closed or len(self._points) >= BATCH, timeout=GATHER_S
                )
                params, self._params = self._params[:_NOTES_AT_ONCE], self._params[_NOTES_AT_ONCE:]
                tags, self._tags = self._tags[:_NOTES_AT_ONCE], self._tags[_NOTES_AT_ONCE:]
                most = BATCH - len(params) - len(tags)
                batch, self._points = self._points[:most], self._points[most:]
            try:
                self._client.log_batch(self._run_id, metrics=batch, params=params, tags=tags)
                failing_since = None
                with self._changed:
                    self._written += len(batch) + len(params) + len(tags)
                    self._changed.notify_all()
            except Exception as error:  # whatever it is, the points must not be lost
                failing_since = failing_since or time.monotonic()
                with self._changed:
                    self._points = batch + self._points
                    self._params, self._tags = params + self._params, tags + self._tags
                    if time.monotonic() - failing_since > GIVE_UP_S and (self._closed or self._flushing):
                        self._give_up(error)
                        return
                time.sleep(RETRY_S)

    def _waiting(self) -> bool:
        return bool(self._points or self._params or self._tags)

    def _give_up(self, error: Exception) -> None:
        self._unsaved.parent.mkdir(parents=True, exist_ok=True)
        with open(self._unsaved, "a") as file:
            for point in self._points:
                row = {"key": point.key, "value": point.value, "timestamp": point.timestamp, "step": point.step}
                file.write(json.dumps(row) + "\n")
        self._error = ConnectionFailedError(
            f"MLflow did not take {len(self._points)} metric points in {GIVE_UP_S:g} s ({error}). They are in "
            f"{self._unsaved}."
        )
        self._points, self._params, self._tags = [], [], []
        self._changed.notify_all()


def last_steps(client: MlflowClient, run: Any) -> dict[str, int]:
    """How far each metric of a run has been written."""
    return {key: _last_step(client, run.info.run_id, key) for key in run.data.metrics}


def _last_step(client: MlflowClient, run_id: str, key: str) -> int:
    return max((point.step for point in client.get_metric_history(run_id, key)), default=-1)
