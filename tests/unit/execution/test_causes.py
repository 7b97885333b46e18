"""Why an attempt failed."""

from __future__ import annotations

import errno
import pickle

import pytest
from ray.exceptions import ActorDiedError, ActorUnschedulableError, NodeDiedError, OutOfMemoryError, RayActorError

from trainlib import Result, TrainingFailedError
from trainlib._execution.causes import Cause, cause_of
from trainlib.errors import CapacityError, CheckpointNotSavedError, ConnectionFailedError, RayLostError


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
        (ConnectionFailedError("no answer"), Cause.SERVICE),
        (CheckpointNotSavedError("the bucket is gone"), Cause.STORAGE),
        (OSError(errno.ENOSPC, "No space left on device"), Cause.STORAGE),
        (FileNotFoundError("no such file"), Cause.USER),
        (RayLostError("its GCS has ended"), Cause.PREEMPTED),
        (CapacityError("no room"), Cause.CAPACITY),
        (KeyboardInterrupt(), Cause.CANCELLED),
        (SystemExit(1), Cause.CANCELLED),
    ],
)
def test_an_error_has_one_cause(error, cause):
    assert cause_of(error) is cause


def test_a_worker_that_went_with_its_node_was_preempted():
    assert cause_of(ActorDiedError(), node_lost=True) is Cause.PREEMPTED


def test_the_error_crosses_processes_whole():
    error = TrainingFailedError("rank 1 died", cause=Cause.WORKER, rank=1, node="10.0.0.1", attempt=2, retry=True)
    error.__cause__ = ValueError("boom")
    error.result = Result(metrics={"loss": 0.5}, error=error)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.result.metrics == {"loss": 0.5}
    assert copy.result.error is copy
    assert (copy.cause, copy.rank, copy.node, copy.attempt, copy.retry) == (Cause.WORKER, 1, "10.0.0.1", 2, True)
    assert str(copy) == "rank 1 died"
    assert isinstance(copy.__cause__, ValueError)
