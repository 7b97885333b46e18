"""What callbacks are given of all ranks: each rank's report, with what is filled in for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trainlib._execution.events import RankReports, Report
from trainlib._execution.worker import WorkerFacts

__all__ = ["DETAILED", "RankResults"]

DETAILED = "SGD_RESULT_ENABLE_DETAILED_AUTOFILLED_METRICS"
"""The environment variable that, set to 1, has more filled in: the date, the host, its address, the process and the time."""


class RankResults:
    """Fills up what ranks reported. Time counts from the start of the attempt."""

    def __init__(self) -> None:
        self._workers: Sequence[WorkerFacts] = ()
        self._seconds: list[float] = []

    def workers_started(self, workers: Sequence[WorkerFacts]) -> None:
        """An attempt begins, on these workers by rank."""
        self._workers = workers
        self._seconds = [0.0] * len(workers)

    def of(self, gathered: RankReports) -> list[dict[str, Any]]:
        """A result for each rank."""
        return [self._result(rank, report) for rank, report in enumerate(gathered.reports)]

    def _result(self, rank: int, report: Report) -> dict[str, Any]:
        self._seconds[rank] += report.seconds
        return {
            **(report.metrics or {}),
            "_timestamp": int(report.timestamp),
            "_time_this_iter_s": report.seconds,
            "_training_iteration": report.iteration,
            **(self._details(rank, report) if os.environ.get(DETAILED) == "1" else {}),
        }

    def _details(self, rank: int, report: Report) -> dict[str, Any]:
        worker = self._workers[rank]
        return {
            "_date": datetime.fromtimestamp(report.timestamp).strftime("%Y-%m-%d_%H-%M-%S"),
            "_hostname": worker.hostname,
            "_node_ip": worker.node_ip,
            "_pid": worker.pid,
            "_time_total_s": self._seconds[rank],
        }
