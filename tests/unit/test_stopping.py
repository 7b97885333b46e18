"""When a training stops."""

from __future__ import annotations

from trainlib.stopping import should_stop


def test_no_rule_never_stops():
    assert not should_stop(None, "t", {"loss": 0})


def test_any_bound_that_is_reached_stops():
    stop = {"training_iteration": 3, "accuracy": 0.9}
    assert not should_stop(stop, "t", {"training_iteration": 2, "accuracy": 0.5})
    assert should_stop(stop, "t", {"training_iteration": 3, "accuracy": 0.5})
    assert should_stop(stop, "t", {"training_iteration": 1, "accuracy": 0.95})


def test_a_metric_that_was_not_reported_does_not_stop():
    assert not should_stop({"accuracy": 0.9}, "t", {"training_iteration": 100})


def test_a_function_decides():
    assert should_stop(lambda trial_id, result: result["loss"] < 0.1, "t", {"loss": 0.05})
    assert not should_stop(lambda trial_id, result: result["loss"] < 0.1, "t", {"loss": 0.5})
