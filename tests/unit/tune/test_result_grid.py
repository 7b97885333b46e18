"""Which result of a sweep is the best."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trainlib import Result, Stopped, StopReason
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


def test_a_trial_that_diverged_is_never_best_but_one_whose_time_was_over_may_be():
    def stopped(loss: float, reason: StopReason) -> Result:
        return replace(result(loss), stopped=Stopped(reason, "so it was"))

    good, nan, late = result(0.5), stopped(0.1, StopReason.NAN), stopped(0.4, StopReason.TIME_LIMIT)
    for scope in ("last", "all"):
        assert grid(nan, good).get_best_result(scope=scope) is good
    assert grid(nan, good, late).get_best_result() is late
    assert grid(nan, good, late).num_errors == 0
    with pytest.raises(ValueError, match="0 of 2 failed, 2 diverged"):
        grid(nan, stopped(0.2, StopReason.DIVERGED)).get_best_result()


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
