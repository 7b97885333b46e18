"""What a training has reported so far: one row an iteration, and the last one filled up as Ray's guides show it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from trainlib._execution.events import Report
from trainlib._execution.worker import WorkerFacts
from trainlib._training.history_rows import RowSpool

# What each result has besides what the training function reported.
FILLED_IN = frozenset(
    {
        *("_timestamp", "_time_this_iter_s", "_training_iteration", "time_this_iter_s", "done", "timesteps_total"),
        *("episodes_total", "training_iteration", "date", "timestamp", "time_total_s", "time_since_restore"),
        *("timesteps_since_restore", "iterations_since_restore", "warmup_time", "experiment_tag", "trial_id"),
        *("experiment_id", "config", "pid", "hostname", "node_ip"),
    }
)
_CLOCK = ("training_iteration", "timestamp", "time_this_iter_s", "time_total_s")


class History:
    """Grows with each report of rank 0. An iteration that a retry repeats replaces its row."""

    def __init__(
        self,
        *,
        trial_id: str,
        experiment_id: str,
        config: dict[str, Any],
        newest_iteration: int,
        rows: RowSpool,
        seconds: float = 0.0,
    ) -> None:
        """A training's; ``newest_iteration``, ``rows`` and ``seconds`` tell how far another process came with it."""
        self.last: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        """The latest value of each metric, also of those that the last report did not have."""
        self.newest_iteration = newest_iteration
        self._fixed: dict[str, Any] = {"trial_id": trial_id, "experiment_id": experiment_id, "config": config}
        self._rows = rows
        self._attempt_started = self._reported = time.monotonic()
        self._trained = seconds
        """Seconds of earlier attempts. The time between attempts is not the training's."""
        self._warmup = 0.0
        self._resumed_at = 0
        self._rank_zero: dict[str, Any] = {}

    @property
    def seconds(self) -> float:
        """How long it has trained until its last report."""
        return self._trained + self._reported - self._attempt_started

    def config_is(self, config: dict[str, Any]) -> None:
        """It goes on with another config."""
        self._fixed["config"] = config

    def attempt_starts(self, resumed_at: int) -> None:
        """An attempt goes on after this iteration."""
        self._trained += self._reported - self._attempt_started
        self._attempt_started = self._reported = time.monotonic()
        self._resumed_at = resumed_at

    def workers_started(self, rank_zero: WorkerFacts) -> None:
        """The training function starts now."""
        self._warmup = time.monotonic() - self._attempt_started
        self._rank_zero = {
            "pid": rank_zero.pid,
            "hostname": rank_zero.hostname,
            "node_ip": rank_zero.node_ip,
        }

    def add(self, report: Report) -> dict[str, Any]:
        """Take a report in; gives its metrics with what is filled in automatically."""
        metrics = report.metrics or {}
        self.last = {**metrics, **self._autofilled(report)}
        self.values = {**self.values, **metrics}
        self._rows.add({**metrics, **{name: self.last[name] for name in _CLOCK}})
        self.newest_iteration = max(self.newest_iteration, report.iteration)
        return self.last

    def finished(self) -> dict[str, Any]:
        """The last result, marked as such; whoever holds it from before keeps it as it was.

        A process that continues a training may find nothing left to report. The last result is then that of an earlier one.
        """
        last = self.last or self._last_before()
        return {**last, "done": True} if last else {}

    def rows(self) -> Sequence[dict[str, Any]]:
        """A row for each iteration, also of those that another process reported."""
        return self._rows.snapshot()

    def _last_before(self) -> dict[str, Any]:
        newest = deque(self._rows.snapshot(), maxlen=1)
        return {**newest[0], **self._fixed} if newest else {}

    def _autofilled(self, report: Report) -> dict[str, Any]:
        now = self._reported = time.monotonic()
        return {
            "_timestamp": int(report.timestamp),
            "_time_this_iter_s": report.seconds,
            "_training_iteration": report.iteration,
            "time_this_iter_s": report.seconds,
            "done": False,
            "timesteps_total": None,
            "episodes_total": None,
            "training_iteration": report.iteration,
            "date": _date(int(report.timestamp)),
            "timestamp": int(report.timestamp),
            "time_total_s": self.seconds,
            "time_since_restore": now - self._attempt_started,
            "timesteps_since_restore": 0,
            "iterations_since_restore": report.iteration - self._resumed_at,
            "warmup_time": self._warmup,
            "experiment_tag": "0",
            **self._fixed,
            **self._rank_zero,
        }


@lru_cache(maxsize=1)
def _date(timestamp: int) -> str:
    """A second, as Ray writes it. A fast training reports thousands of times in each."""
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d_%H-%M-%S")
