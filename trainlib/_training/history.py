"""What a training has reported so far: one row an iteration, and the last one filled up as Ray's guides show it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from trainlib._autofilled import CONSTANTS, FILLED_IN, IN_EACH_ROW, date_of
from trainlib._execution.events import Report
from trainlib._execution.reported import numbers_of
from trainlib._execution.worker import WorkerFacts
from trainlib._flat import flattened
from trainlib._training.history_rows import RowSpool

__all__ = ["FILLED_IN", "History"]


class History:
    """Grows with each report of rank 0. An iteration that a retry repeats replaces its row."""

    def __init__(
        self,
        *,
        trial_id: str,
        experiment_id: str,
        experiment_tag: str = "0",
        config: dict[str, Any],
        newest_iteration: int,
        rows: RowSpool,
        seconds: float = 0.0,
    ) -> None:
        """A training's; ``newest_iteration``, ``rows`` and ``seconds`` tell how far another process came with it."""
        self.last: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        """The latest value of each number by its flat name, also of those that the last report did not have."""
        self.judged: dict[str, Any] = {}
        """The last result as judges see it: nested numbers are there by their flat names, too."""
        self.newest_iteration = newest_iteration
        self._fixed: dict[str, Any] = {
            "trial_id": trial_id,
            "experiment_id": experiment_id,
            "experiment_tag": experiment_tag,
            "config": config,
        }
        self._rows = rows
        self._attempt_started = self._reported = time.monotonic()
        self._trained = seconds
        """Seconds of earlier attempts. The time between attempts is not the training's."""
        self._warmup = 0.0
        self._resumed_at = 0
        self._rank_zero: dict[str, Any] = {}
        self._attempt: dict[str, Any] = {"resumed_at": 0, "trained_before_s": seconds}
        """What all rows of an attempt have in common. It is never changed, but replaced."""

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
        self._attempt = {**self._attempt, "resumed_at": resumed_at, "trained_before_s": self._trained}

    def workers_started(self, rank_zero: WorkerFacts) -> None:
        """The training function starts now."""
        self._warmup = time.monotonic() - self._attempt_started
        self._rank_zero = {
            "pid": rank_zero.pid,
            "hostname": rank_zero.hostname,
            "node_ip": rank_zero.node_ip,
        }
        self._attempt = {**self._attempt, "warmup_time": self._warmup, **self._rank_zero}

    def add(self, report: Report, numbers: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Take a report in; gives its metrics with what is filled in automatically. ``numbers`` are those in it."""
        metrics = report.metrics or {}
        numbers, filled_in = numbers_of(metrics) if numbers is None else numbers, self._autofilled(report)
        self.last = self.judged = {**metrics, **filled_in}
        if numbers is not metrics:
            self.judged = {**metrics, **numbers, **filled_in}
        self.values = {**self.values, **numbers}
        flat = metrics if numbers is metrics else flattened(metrics)
        self._rows.add({**flat, **{name: filled_in[name] for name in IN_EACH_ROW}}, self._attempt)
        self.newest_iteration = max(self.newest_iteration, report.iteration)
        return self.last

    def so_far(self) -> dict[str, Any]:
        """The last result; empty if there is none.

        A process that continues a training may fail, or find nothing left to do, before its first report. The last result is
        then that of an earlier one.
        """
        return dict(self.last or self._last_before())

    def finished(self) -> dict[str, Any]:
        """The last result, marked as such; whoever holds it from before keeps it as it was."""
        last = self.so_far()
        return {**last, "done": True} if last else {}

    def rows(self) -> Sequence[dict[str, Any]]:
        """A row for each iteration, also of those that another process reported."""
        return self._rows.snapshot()

    def _last_before(self) -> dict[str, Any]:
        newest = deque(self._rows.snapshot(), maxlen=1)
        return {**newest[0], **self._fixed} if newest else {}

    def _autofilled(self, report: Report) -> dict[str, Any]:
        before, now = self._reported, time.monotonic()
        self._reported = now
        return {
            "_timestamp": int(report.timestamp),
            "_time_this_iter_s": report.seconds,
            "_training_iteration": report.iteration,
            "time_this_iter_s": now - before,
            "done": False,
            "training_iteration": report.iteration,
            "date": date_of(int(report.timestamp)),
            "timestamp": int(report.timestamp),
            "time_total_s": self.seconds,
            "time_since_restore": now - self._attempt_started,
            "iterations_since_restore": report.iteration - self._resumed_at,
            "warmup_time": self._warmup,
            **CONSTANTS,
            **self._fixed,
            **self._rank_zero,
        }
