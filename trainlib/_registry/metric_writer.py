"""The one writer of a run's metrics: batched, in order, one point for each metric and iteration.

Params and tags that can wait a moment go with the next batch: each call of MLflow costs as much as a short trial.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._registry.metrics import stored_name
from trainlib._registry.params import stored_params
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

BATCH = 1000  # MLflow's own limit for one call
_NOTES_AT_ONCE = 100  # its limit for params, and for tags
GATHER_S = 0.25
RETRY_S = 2.0
GIVE_UP_S = 30.0


class MetricWriter:
    """Writes points in the background. Points that MLflow does not accept now are kept and tried again.

    Its thread starts when there is something to write, and not before.
    """

    def __init__(self, client: MlflowClient, run_id: str, *, last_steps: dict[str, int], unsaved: Path) -> None:
        """
        Args:
            client: A client of the run's store.
            run_id: The run.
            last_steps: The last iteration that each metric has a point of already. Up to there, no second one is written.
            unsaved: The file for points that MLflow does not accept.
        """
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
        self._warned: set[str] = set()
        self._thread: threading.Thread | None = None

    def write(
        self,
        iteration: int,
        metrics: dict[str, float],
        timestamp: float,
        *,
        model_id: str | None = None,
    ) -> list[str]:
        """Queue the metrics of an iteration, without waiting. Returns what a person should know about them."""
        from mlflow.entities import Metric

        points, warnings = [], []
        for name, value in metrics.items():
            key = stored_name(name)
            if self._last_steps.get(key, -1) >= iteration:
                continue
            self._last_steps[key] = iteration
            number = float(value)
            if not math.isfinite(number):
                if name not in self._warned:
                    warnings.append(f"metric {name!r} is {number} at iteration {iteration}; MLflow shows it as a gap")
                    self._warned.add(name)
                number = math.nan  # MLflow stores infinity as 1.8e308, which flattens the whole chart
            points.append(Metric(key, number, int(timestamp * 1000), iteration, model_id=model_id, run_id=self._run_id))
        with self._changed:
            self._points += points
            self._queued += len(points)
            self._start_if_needed()
            self._changed.notify_all()
        return warnings

    def note(self, params: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None) -> None:
        """Queue params and tags; they are written with the points that come next, or at :meth:`flush`."""
        from mlflow.entities import RunTag

        with self._changed:
            new = stored_params(params or {})
            self._params += new
            self._tags += [RunTag(key, value) for key, value in (tags or {}).items()]
            self._queued += len(new) + len(tags or ())

    def flush(self) -> None:
        """Return when everything queued so far is written. What is queued meanwhile is not waited for.

        Raises:
            ConnectionFailedError: MLflow did not accept it. The points are in a file then.
        """
        with self._changed:
            self._start_if_needed()
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
        """Write what is left, and end the thread.

        Raises:
            ConnectionFailedError: MLflow did not accept it. The points are in a file then.
        """
        with self._changed:
            self._closed = True
            self._start_if_needed()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _start_if_needed(self) -> None:
        if self._thread is None and self._has_more():
            self._thread = threading.Thread(target=self._run, name="metric-writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        failing_since: float | None = None
        while True:
            with self._changed:
                while not self._points and not self._closed and not (self._flushing and self._has_more()):
                    self._changed.wait()
                if not self._has_more():
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

    def _has_more(self) -> bool:
        return bool(self._points or self._params or self._tags)

    def _give_up(self, error: Exception) -> None:
        self._unsaved.parent.mkdir(parents=True, exist_ok=True)
        with open(self._unsaved, "a") as file:
            for point in self._points:
                row = {"key": point.key, "value": point.value, "timestamp": point.timestamp, "step": point.step}
                file.write(json.dumps(row) + "\n")
        self._error = ConnectionFailedError(
            f"MLflow did not accept {len(self._points)} metric points within {GIVE_UP_S:g} s ({error}). They are in "
            f"{self._unsaved}."
        )
        self._points, self._params, self._tags = [], [], []
        self._changed.notify_all()
