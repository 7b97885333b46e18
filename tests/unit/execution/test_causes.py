"""What failed, and whether it is tried again."""

from __future__ import annotations

import pickle

import pytest
from ray.exceptions import ActorDiedError, ActorUnschedulableError, NodeDiedError, OutOfMemoryError, RayActorError

from trainlib import FailureConfig, TrainingFailedError
from trainlib._execution.causes import UNLIMITED, Cause, cause_of, may_retry, retry_limit
from trainlib.errors import CapacityError, ConnectionFailedError


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("boom"), Cause.USER),
        (ActorDiedError(), Cause.WORKER),
        (RayActorError(actor_init_failed=True), Cause.USER),
        (OutOfMemoryError("full"), Cause.WORKER),
        (RayActorError(preempted=True), Cause.PREEMPTED),
        (NodeDiedError("gone"), Cause.PREEMPTED),
        (ActorUnschedulableError("its node is gone"), Cause.PREEMPTED),
        (ConnectionFailedError("no answer"), Cause.WORKER),
        (CapacityError("no room"), Cause.CAPACITY),
        (KeyboardInterrupt(), Cause.CANCELLED),
        (SystemExit(1), Cause.CANCELLED),
    ],
)
def test_an_error_has_one_cause(error, cause):
    assert cause_of(error) is cause


def test_a_worker_that_went_with_its_node_was_preempted():
    assert cause_of(ActorDiedError(), node_lost=True) is Cause.PREEMPTED


def test_each_cause_has_its_own_budget():
    config = FailureConfig(max_failures=1, max_preemptions=2)
    assert may_retry(Cause.WORKER, {Cause.WORKER: 1, Cause.PREEMPTED: 2}, config)
    assert not may_retry(Cause.WORKER, {Cause.WORKER: 2}, config)
    assert may_retry(Cause.PREEMPTED, {Cause.WORKER: 1, Cause.PREEMPTED: 2}, config)
    assert not may_retry(Cause.PREEMPTED, {Cause.PREEMPTED: 3}, config)


def test_minus_one_retries_for_ever():
    assert may_retry(Cause.WORKER, {Cause.WORKER: 10_000}, FailureConfig(max_failures=-1))
    assert retry_limit(FailureConfig(max_failures=-1)) == UNLIMITED
    assert retry_limit(FailureConfig(max_failures=2, max_preemptions=3)) == 5


@pytest.mark.parametrize("cause", [Cause.CAPACITY, Cause.CANCELLED, Cause.USER])
def test_some_causes_are_never_retried(cause):
    assert not may_retry(cause, {cause: 1}, FailureConfig(max_failures=-1))


def test_a_users_error_is_retried_when_asked_for():
    config = FailureConfig(max_failures=1, retry_user_errors=True)
    assert may_retry(Cause.USER, {Cause.USER: 1}, config)
    assert not may_retry(Cause.USER, {Cause.USER: 1, Cause.WORKER: 1}, config)


def test_the_error_crosses_processes_whole():
    error = TrainingFailedError("rank 1 died", cause=Cause.WORKER, rank=1, node="10.0.0.1", attempt=2, retry=True)
    error.__cause__ = ValueError("boom")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.cause, copy.rank, copy.node, copy.attempt, copy.retry) == (Cause.WORKER, 1, "10.0.0.1", 2, True)
    assert str(copy) == "rank 1 died"
    assert isinstance(copy.__cause__, ValueError)
