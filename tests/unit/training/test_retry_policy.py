"""Which failed attempts are made again."""

from __future__ import annotations

import pytest

from trainlib import FailureConfig, TrainingFailedError
from trainlib._execution.causes import Cause
from trainlib._training.retry_policy import UNLIMITED, Decision, decide, most_retries
from trainlib.errors import CapacityError, ConnectionFailedError

RETRY, GIVE_UP = Decision.RETRY, Decision.GIVE_UP


def after(cause: Cause, config: FailureConfig, *before: Cause) -> Decision:
    return decide(TrainingFailedError("no", cause=cause), before, config)


def test_each_cause_has_its_own_budget():
    config = FailureConfig(max_failures=1, max_preemptions=2)
    assert after(Cause.WORKER, config, Cause.PREEMPTED, Cause.PREEMPTED) is RETRY
    assert after(Cause.WORKER, config, Cause.WORKER) is GIVE_UP
    assert after(Cause.PREEMPTED, config, Cause.WORKER, Cause.PREEMPTED) is RETRY
    assert after(Cause.PREEMPTED, config, Cause.PREEMPTED, Cause.PREEMPTED) is GIVE_UP


@pytest.mark.parametrize("cause", [Cause.WORKER, Cause.STORAGE, Cause.SERVICE])
@pytest.mark.parametrize("before", [Cause.WORKER, Cause.STORAGE, Cause.SERVICE])
def test_a_store_or_a_server_that_was_away_counts_like_a_lost_worker(cause, before):
    assert after(cause, FailureConfig(max_failures=0)) is GIVE_UP
    assert after(cause, FailureConfig(max_failures=1)) is RETRY
    assert after(cause, FailureConfig(max_failures=1), before) is GIVE_UP
    assert after(cause, FailureConfig(max_failures=1), Cause.PREEMPTED) is RETRY
    assert after(cause, FailureConfig(max_failures=-1), *[before] * 100) is RETRY


def test_minus_one_retries_without_limit():
    assert after(Cause.WORKER, FailureConfig(max_failures=-1), *[Cause.WORKER] * 10_000) is RETRY
    assert most_retries(FailureConfig(max_failures=-1)) == UNLIMITED
    assert most_retries(FailureConfig(max_failures=2, max_preemptions=3)) == 5


@pytest.mark.parametrize("cause", [Cause.CAPACITY, Cause.CANCELLED, Cause.USER])
def test_some_causes_are_never_retried(cause):
    assert after(cause, FailureConfig(max_failures=-1)) is GIVE_UP


def test_a_users_error_is_retried_when_asked_for():
    config = FailureConfig(max_failures=1, retry_user_errors=True)
    assert after(Cause.USER, config) is RETRY
    assert after(Cause.USER, config, Cause.WORKER) is GIVE_UP


@pytest.mark.parametrize(
    ("error", "decision"),
    [
        (ValueError("a bug"), GIVE_UP),
        (CapacityError("no room"), GIVE_UP),
        (KeyboardInterrupt(), GIVE_UP),
        (ConnectionFailedError("no answer"), RETRY),
    ],
)
def test_an_error_that_names_no_cause_has_one_all_the_same(error, decision):
    assert decide(error, [], FailureConfig(max_failures=3)) is decision
