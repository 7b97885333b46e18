"""When a training stops."""

from __future__ import annotations

import pickle
import time

from trainlib import RunConfig
from trainlib import _rooms as rooms
from trainlib._training.stopping import should_stop, unending, unreported
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


def test_a_bound_on_a_metric_that_the_first_report_lacks_is_named_with_what_is_meant():
    first = {
        "env_runners": {"episode_return_mean": 21.5, "num_episodes": 8},
        "evaluation": {"env_runners": {"episode_return_mean": 20.0}},
        "training_iteration": 1,
        "timesteps_total": None,
    }
    for name in ("episode_reward_mean", "episode_return_mean", "env_runner/episode_return_mean"):
        warning = str(unreported(False, {name: 150, "training_iteration": 9}, first))
        assert f"has no '{name}'. Did you mean 'env_runners/episode_return_mean'? It may still be reported" in warning
    both = str(unreported(False, {"timesteps_total": 100, "xyz": 1}, first))
    assert "has no 'timesteps_total' and no 'xyz'" in both, "nothing is reached by what is no number"
    assert "They may still be reported later" in both
    assert unreported(False, {"env_runners/num_episodes": 100, "training_iteration": 3}, first) is None
    assert unreported(True, {"xyz": 1}, first) is None, "it ends all the same"
    assert unreported(False, None, first) is unreported(False, lambda trial_id, result: False, first) is None
