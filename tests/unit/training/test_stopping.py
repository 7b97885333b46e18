"""When a training stops."""

from __future__ import annotations

import pickle
import time

from trainlib import RunConfig
from trainlib import _rooms as rooms
from trainlib._training.stopping import should_stop, unending
from trainlib.tune import TimeoutStopper


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
    assert not should_stop({"timesteps_total": 1, "phase": 2}, "t", {"timesteps_total": None, "phase": "warm-up"})
    assert not should_stop(lambda trial_id, result: result["loss"] < 0.1, "t", {"loss": 0.5})


def test_a_stopper_that_ends_all_ends_a_single_training_too(monkeypatch):
    stopper = TimeoutStopper(3600)
    assert not should_stop(stopper, "a", {})
    an_hour_passes(monkeypatch)
    assert should_stop(stopper, "a", {})


def test_the_time_of_a_stopper_counts_anew_in_another_process(monkeypatch):
    stopper = TimeoutStopper(3600)
    an_hour_passes(monkeypatch)
    assert stopper.stop_all()
    assert not pickle.loads(pickle.dumps(stopper)).stop_all()


def an_hour_passes(monkeypatch):
    later = time.monotonic() + 3601
    monkeypatch.setattr("trainlib.tune.stopper.time.monotonic", lambda: later)


def test_a_training_that_nothing_ends_is_said_to_have_no_end():
    assert not rooms.load("rl").ends_by_itself, "an algorithm iterates for ever"
    assert "RunConfig(stop={'training_iteration': 10})" in str(unending(False, RunConfig()))
    assert unending(True, RunConfig()) is None
    assert unending(False, RunConfig(stop={"training_iteration": 10})) is None
    assert unending(False, RunConfig(max_time_s=60)) is None
