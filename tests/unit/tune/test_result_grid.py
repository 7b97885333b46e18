"""Which result of a sweep is the best."""

from __future__ import annotations

import math

import pytest

from trainlib import Result
from trainlib.tune import ResultGrid


def result(*losses: float, error: Exception | None = None) -> Result:
    history = [{"loss": loss, "training_iteration": step} for step, loss in enumerate(losses, start=1)]
    return Result(metrics=dict(history[-1]), history=history, error=error)


def grid(*results: Result) -> ResultGrid:
    return ResultGrid(results, metric="loss", mode="min")


def test_a_failed_trial_is_best_only_if_all_failed():
    good, failed = result(0.5), result(0.1, error=ValueError("no"))
    assert grid(failed, good).get_best_result() is good
    assert grid(failed).get_best_result() is failed


@pytest.mark.parametrize(
    ("scope", "best"), [("last", 1), ("all", 0), ("avg", 1), ("last-5-avg", 1), ("last-10-avg", 1)]
)
def test_scopes(scope, best):
    results = [result(0.1, 9.0), result(2.0, 1.0)]
    assert grid(*results).get_best_result(scope=scope) is results[best]


def test_nan_does_not_hide_other_values():
    results = [result(math.nan, 0.1), result(0.5, 0.4)]
    assert grid(*results).get_best_result(scope="all") is results[0]
    frame = grid(*results).get_dataframe(filter_metric="loss", filter_mode="min")
    assert frame["loss"].tolist() == [0.1, 0.4]
    assert frame["training_iteration"].tolist() == [2, 2]
