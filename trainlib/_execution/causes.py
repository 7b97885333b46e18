"""Why an attempt failed, and whether it is made again. Pure: nothing here talks to Ray."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ray.exceptions import (
    ActorUnavailableError,
    ActorUnschedulableError,
    NodeDiedError,
    OutOfMemoryError,
    RayActorError,
    WorkerCrashedError,
)

from trainlib.config import FailureConfig
from trainlib.errors import CapacityError, ConnectionFailedError

__all__ = ["Cause", "cause_of", "may_retry", "retry_limit"]

# Prefect wants a number of retries. This many stands for "for ever".
UNLIMITED = 1_000_000


class Cause(StrEnum):
    """Why an attempt failed."""

    USER = "user"
    """The training function raised. It would raise again, so it is not retried unless asked for."""
    WORKER = "worker"
    """A worker process, or a server, died or stopped answering. Counts against ``max_failures``."""
    PREEMPTED = "preempted"
    """A node was drained or lost. Counts against ``max_preemptions``, since no code is to blame."""
    CAPACITY = "capacity"
    """The cluster had no room for the gang in the time given. Not retried: waiting has been done."""
    CANCELLED = "cancelled"
    """Somebody ended it. Never retried."""


def cause_of(error: BaseException, *, node_lost: bool = False) -> Cause:
    """The cause that an error speaks of. ``node_lost`` tells that the dead worker's node is gone as well."""
    if isinstance(error, Exception) is False:
        return Cause.CANCELLED
    if isinstance(error, CapacityError):
        return Cause.CAPACITY
    if isinstance(error, (NodeDiedError, ActorUnschedulableError)):  # the node went before the worker came
        return Cause.PREEMPTED
    if isinstance(error, ConnectionFailedError):  # a server that does not answer now may answer a retry
        return Cause.WORKER
    if isinstance(error, (ActorUnavailableError, TimeoutError)):  # nobody answers, and Ray does not know why
        return Cause.PREEMPTED if node_lost else Cause.WORKER
    if isinstance(error, RayActorError):
        if error.actor_init_failed:  # e.g. the framework cannot be imported: it never will be
            return Cause.USER
        return Cause.PREEMPTED if node_lost or error.preempted else Cause.WORKER
    if isinstance(error, (OutOfMemoryError, WorkerCrashedError)):
        return Cause.WORKER
    return Cause.USER


def may_retry(cause: Cause, failures: Mapping[Cause, int], config: FailureConfig) -> bool:
    """Whether the budget allows another attempt; ``failures`` counts them by cause, this one included.

    Example:
        >>> may_retry(Cause.WORKER, {Cause.WORKER: 1}, FailureConfig(max_failures=1))
        True
        >>> may_retry(Cause.WORKER, {Cause.WORKER: 2}, FailureConfig(max_failures=1))
        False
        >>> may_retry(Cause.USER, {Cause.USER: 1}, FailureConfig(max_failures=5))
        False
    """
    if cause is Cause.PREEMPTED:
        return config.max_preemptions < 0 or failures[cause] <= config.max_preemptions
    if cause is Cause.WORKER or (cause is Cause.USER and config.retry_user_errors):
        counted = failures.get(Cause.WORKER, 0) + failures.get(Cause.USER, 0)
        return config.max_failures < 0 or counted <= config.max_failures
    return False


def retry_limit(config: FailureConfig) -> int:
    """How many retries Prefect may make in all; :func:`may_retry` keeps each budget within that."""
    if config.max_failures < 0 or config.max_preemptions < 0:
        return UNLIMITED
    return config.max_failures + config.max_preemptions
