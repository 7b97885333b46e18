"""Puts together what all ranks reported in an iteration: they do not report at the same time."""

from __future__ import annotations

from trainlib._execution.events import RankReports, Report

__all__ = ["Gathering"]


class Gathering:
    """Holds reports until all ranks have made theirs. A rank is never more than some reports ahead of the slowest one."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._waiting: dict[int, dict[int, Report]] = {}

    def add(self, rank: int, report: Report) -> RankReports | None:
        """Take a report in. Gives those of all ranks, if this was the last one of its iteration."""
        if report.metrics is None:  # a checkpoint that was saved without a report
            return None
        reports = self._waiting.setdefault(report.iteration, {})
        reports[rank] = report
        if len(reports) < self._ranks:
            return None
        del self._waiting[report.iteration]
        return RankReports(report.iteration, tuple(reports[each] for each in range(self._ranks)))
