"""What is filled in for each rank."""

from __future__ import annotations

import pytest

from trainlib._execution.events import RankReports, Report
from trainlib._execution.worker import WorkerFacts
from trainlib._training.rank_results import DETAILED, RankResults

WORKERS = [WorkerFacts("node", "10.0.0.1", "one", 11), WorkerFacts("node", "10.0.0.2", "two", 22)]


def gathered(iteration: int) -> RankReports:
    return RankReports(
        iteration, tuple(Report(iteration, {"loss": float(rank)}, None, 1630471763.7, 0.5 + rank) for rank in range(2))
    )


def results(*iterations: int) -> list[list[dict]]:
    filled = RankResults()
    filled.workers_started(WORKERS)
    return [filled.of(gathered(iteration)) for iteration in iterations]


def test_each_rank_has_its_own_time(monkeypatch):
    monkeypatch.delenv(DETAILED, raising=False)
    assert results(3) == [
        [
            {"loss": 0.0, "_timestamp": 1630471763, "_time_this_iter_s": 0.5, "_training_iteration": 3},
            {"loss": 1.0, "_timestamp": 1630471763, "_time_this_iter_s": 1.5, "_training_iteration": 3},
        ]
    ]


@pytest.mark.parametrize("value", ["0", ""])
def test_details_are_left_out_unless_the_variable_is_one(monkeypatch, value):
    monkeypatch.setenv(DETAILED, value)
    assert "_pid" not in results(1)[0][0]


def test_details_say_where_a_rank_is_and_how_long_it_has_trained(monkeypatch):
    monkeypatch.setenv(DETAILED, "1")
    _, (_, second) = results(1, 2)
    details = {name: second[name] for name in ("_hostname", "_node_ip", "_pid", "_time_total_s")}
    assert details == {"_hostname": "two", "_node_ip": "10.0.0.2", "_pid": 22, "_time_total_s": 3.0}
    assert second["_date"].startswith("2021-09-01_")
