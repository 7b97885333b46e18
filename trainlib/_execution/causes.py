"""Why an attempt failed. Pure: nothing here talks to Ray."""

from __future__ import annotations

from enum import StrEnum

from ray.exceptions import (
    ActorUnavailableError,
    ActorUnschedulableError,
    NodeDiedError,
    OutOfMemoryError,
    RayActorError,
    WorkerCrashedError,
)

from trainlib import _storage as storage
from trainlib.errors import CapacityError, CheckpointNotSavedError, ConnectionFailedError, RayLostError

__all__ = ["Cause", "cause_of"]


class Cause(StrEnum):
    """Why an attempt failed."""

    USER = "user"
    """The training function raised. Counts against ``max_failures``; if it raises the same again, it is given up."""
    WORKER = "worker"
    """A worker process died or stopped answering. Counts against ``max_failures``."""
    PREEMPTED = "preempted"
    """A node was drained or lost. Counts against ``max_preemptions``, since no code is to blame."""
    CAPACITY = "capacity"
    """The cluster had no room for the gang in the time given. Not retried: waiting has been done."""
    STORAGE = "storage"
    """A checkpoint could not be saved, and no newer one was, or a disk is full. Counts against ``max_failures``."""
    SERVICE = "service"
    """MLflow, or another server, was away for too long. Counts against ``max_failures``."""
    CANCELLED = "cancelled"
    """Somebody ended it. Never retried."""


def cause_of(error: BaseException, *, node_lost: bool = False) -> Cause:
    """The cause behind an error. ``node_lost`` says that the dead worker's node is gone as well."""
    if not isinstance(error, Exception):
        return Cause.CANCELLED
    if isinstance(error, CapacityError):
        return Cause.CAPACITY
    # The node went before the worker came, or all nodes did.
    if isinstance(error, (NodeDiedError, ActorUnschedulableError, RayLostError)):
        return Cause.PREEMPTED
    if isinstance(error, ConnectionFailedError):  # a server that does not answer now may answer a retry
        return Cause.SERVICE
    if isinstance(error, CheckpointNotSavedError) or storage.lacks_room(error):
        return Cause.STORAGE
    if isinstance(error, (ActorUnavailableError, TimeoutError)):  # nobody answers, and Ray does not know why
        return Cause.PREEMPTED if node_lost else Cause.WORKER
    if isinstance(error, RayActorError):
        if error.actor_init_failed:  # e.g. the framework cannot be imported: it never will be
            return Cause.USER
        return Cause.PREEMPTED if node_lost or error.preempted else Cause.WORKER
    if isinstance(error, (OutOfMemoryError, WorkerCrashedError)):
        return Cause.WORKER
    return Cause.USER
