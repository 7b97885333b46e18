"""Which failed attempts are made again."""

from __future__ import annotations

import pytest

from trainlib import FailureConfig
from trainlib._execution.causes import Cause
from trainlib._execution.origin import Origin
from trainlib._training.retry_policy import UNLIMITED, Decision, Failure, decide, most_retries, pause_before_retry

RETRY, GIVE_UP, REPEATED = Decision.RETRY, Decision.GIVE_UP, Decision.GIVE_UP_REPEATED


def after(cause: Cause, config: FailureConfig, *before: Cause) -> Decision:
    return decide(Failure(cause), [Failure(each) for each in before], config)


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


@pytest.mark.parametrize("cause", [Cause.CAPACITY, Cause.CANCELLED])
def test_some_causes_are_never_retried(cause):
    assert after(cause, FailureConfig(max_failures=-1)) is GIVE_UP


BUG = Origin("builtins.ValueError", "train.py", 7)


def raised(at: Origin | None = BUG, checkpoint: int | None = None) -> Failure:
    return Failure(Cause.USER, at, checkpoint)


def test_an_exception_of_the_training_function_counts_against_max_failures():
    assert decide(raised(), [], FailureConfig()) is GIVE_UP
    assert decide(raised(), [], FailureConfig(max_failures=1)) is RETRY
    assert decide(raised(), [Failure(Cause.WORKER)], FailureConfig(max_failures=1)) is GIVE_UP
    assert decide(Failure(Cause.WORKER), [raised()], FailureConfig(max_failures=1)) is GIVE_UP


@pytest.mark.parametrize(
    ("again", "decision"),
    [
        (raised(), REPEATED),
        (raised(checkpoint=0), RETRY),
        (raised(Origin("builtins.KeyError", "train.py", 7)), RETRY),
        (raised(Origin("builtins.ValueError", "train.py", 8)), RETRY),
        (raised(Origin("builtins.ValueError", "model.py", 7)), RETRY),
    ],
)
@pytest.mark.parametrize("between", [[], [Failure(Cause.WORKER)], [Failure(Cause.PREEMPTED)]])
def test_the_same_exception_again_without_a_checkpoint_in_between_is_a_bug(again, decision, between):
    assert decide(again, [raised(), *between], FailureConfig(max_failures=10)) is decision
    assert decide(again, [raised(), *between], FailureConfig(max_failures=-1)) is decision


def test_a_training_that_comes_further_each_time_is_retried_until_it_no_longer_does():
    before = [raised(checkpoint=number) for number in range(50)]
    assert decide(raised(checkpoint=50), before, FailureConfig(max_failures=-1)) is RETRY
    assert decide(raised(checkpoint=49), before, FailureConfig(max_failures=-1)) is REPEATED


def test_what_was_raised_outside_of_the_training_function_is_not_retried():
    assert decide(raised(at=None), [], FailureConfig(max_failures=-1)) is GIVE_UP


def test_always_and_never():
    always, never = (FailureConfig(max_failures=3, retry_user_errors=word) for word in ("always", "never"))
    assert decide(raised(), [raised()], always) is RETRY
    assert decide(raised(at=None), [], always) is RETRY
    assert decide(raised(), [raised()] * 3, always) is GIVE_UP
    assert decide(raised(), [], never) is GIVE_UP
    assert FailureConfig(retry_user_errors=True).retry_user_errors == "always"
    assert FailureConfig(retry_user_errors=False).retry_user_errors == "never"


STORAGE, SERVICE, WORKER = Cause.STORAGE, Cause.SERVICE, Cause.WORKER


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        ([], 0),
        ([WORKER], 0),
        ([Cause.PREEMPTED], 0),
        ([Cause.USER] * 9, 0),
        ([STORAGE], 1),
        ([SERVICE], 1),
        ([STORAGE, SERVICE, STORAGE], 4),
        ([STORAGE] * 9, 256),
        ([STORAGE] * 10, 300),
        ([SERVICE] * 100_000, 300),
        ([STORAGE, STORAGE, WORKER], 0),
        ([STORAGE, STORAGE, WORKER, STORAGE], 1),
    ],
)
def test_what_lasts_is_retried_after_a_pause_that_grows_and_is_bounded(failures, seconds):
    assert pause_before_retry(failures) == seconds
