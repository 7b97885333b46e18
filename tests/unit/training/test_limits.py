"""What a training may take, and what ends it."""

from __future__ import annotations

import math
import time

import pytest

from trainlib import DivergenceConfig, RunConfig, StopReason
from trainlib._registry.attempts import AttemptRecord, Outcome, attempt_tags, recorded_attempts, stopped_by
from trainlib._registry.tags import STOPPED
from trainlib._training.judges import Verdict, rule, stop_judges
from trainlib._training.limits import Limits


def test_without_limits_there_is_no_judge_so_that_reports_need_not_wait():
    assert Limits(RunConfig(), spent_s=1e9).judges() == []


def test_only_the_time_in_which_workers_run_counts_and_that_of_earlier_processes():
    limits = Limits(RunConfig(max_time_s=100), spent_s=40.0)
    time.sleep(0.02)  # waits for room
    assert limits.spent_s == 40.0
    limits.workers_started()
    time.sleep(0.02)
    limits.attempt_ended()
    limits.attempt_ended()
    spent = limits.spent_s
    assert 40.02 <= spent < 60
    time.sleep(0.02)  # waits for a retry
    assert limits.spent_s == spent
    assert limits.time_is_over() is None
    assert str(Limits(RunConfig(max_time_s=90.5), spent_s=90.5).time_is_over()) == (
        "its time limit of 90.5 s is over (RunConfig.max_time_s)"
    )


def test_time_also_ends_a_training_that_reports_nothing():
    (judge,) = Limits(RunConfig(max_time_s=1), spent_s=1.0).judges()
    assert judge.between_reports
    ruling = rule([judge], {})
    assert (ruling.verdict, ruling.outcome) == (Verdict.STOP, Outcome.TIME_LIMIT)
    assert ruling.stopped is not None
    assert ruling.stopped.reason is StopReason.TIME_LIMIT


def test_a_limit_goes_before_what_stop_says_and_looks_only_at_what_was_reported():
    config = RunConfig(stop_on_nan=True, stop={"training_iteration": 2})
    judges = [*Limits(config, spent_s=0.0).judges(), *stop_judges(config.stop, "t")]
    filled_in = {"training_iteration": 2, "time_total_s": math.nan, "config": {"lr": math.nan}}
    assert rule(judges, {**filled_in, "loss": 1.0}).outcome is Outcome.FINISHED
    assert rule(judges, {**filled_in, "loss": math.nan}).outcome is Outcome.NAN


def test_each_attempt_is_compared_with_its_own_best():
    """It resumes from a checkpoint, which may be older than the best value of the attempt before."""
    limits = Limits(RunConfig(divergence=DivergenceConfig(patience=1)), spent_s=0.0)
    (judge,) = limits.judges()
    assert judge({"training_iteration": 1, "loss": 0.01}) is Verdict.CONTINUE
    limits.workers_started()
    assert judge({"training_iteration": 1, "loss": 1.0}) is Verdict.CONTINUE


@pytest.mark.parametrize("reason", StopReason)
def test_the_registry_keeps_which_limit_ended_a_training(reason):
    tags = attempt_tags(AttemptRecord(1, Outcome(reason), None, message="so it did"))
    assert tags[STOPPED] == reason.value
    stopped = stopped_by(recorded_attempts(tags))
    assert stopped is not None
    assert (stopped.reason, str(stopped)) == (reason, "so it did")


def test_other_ends_are_no_limits():
    for outcome in set(Outcome) - {Outcome(reason) for reason in StopReason}:
        record = AttemptRecord(1, outcome, None)
        assert stopped_by([record]) is None
        assert STOPPED not in attempt_tags(record)
    assert stopped_by([]) is None
