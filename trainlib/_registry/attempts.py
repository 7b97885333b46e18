"""What an attempt leaves in the registry: how it ended, and what it cost. Each record is a tag of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trainlib._registry import tags
from trainlib.result import Stopped, StopReason

__all__ = ["AttemptRecord", "Outcome", "attempt_tags", "has_failed", "recorded_attempts", "stopped_by"]

_LONGEST_MESSAGE = 1000


class Outcome(StrEnum):
    """How an attempt ended. The first group is successes, the second is failures, named after their causes."""

    FINISHED = "finished"
    """Its training function returned, or reached what ``RunConfig.stop`` asks for."""
    STOPPED = "stopped"
    """A scheduler stopped it early."""
    PAUSED = "paused"
    """A scheduler paused it; it goes on from its newest checkpoint."""
    CUT_OFF = "cut off"
    """Its sweep failed while it was running."""
    TIME_LIMIT = "time limit"
    """The time of ``RunConfig.max_time_s`` was over."""
    NAN = "nan"
    """A metric was NaN, and ``RunConfig.stop_on_nan`` is set."""
    DIVERGED = "diverged"
    """A metric was beyond the limit of ``RunConfig.divergence``."""

    USER = "user"
    """Its training function raised."""
    WORKER = "worker"
    """A worker died or stopped answering."""
    PREEMPTED = "preempted"
    """A node was drained or lost."""
    CAPACITY = "capacity"
    """The cluster had no room for its workers."""
    STORAGE = "storage"
    """A checkpoint could not be saved."""
    SERVICE = "service"
    """MLflow, or another server, was away for too long."""
    CANCELLED = "cancelled"
    """Somebody ended it."""
    SUSPENDED = "suspended"
    """Somebody suspended its flow run in Prefect; it goes on from its newest checkpoint when that is resumed."""
    LOST = "lost"
    """The process that coordinated it ended before it could say how the attempt went."""


_SUCCESSES = (Outcome.FINISHED, Outcome.STOPPED, Outcome.PAUSED, Outcome.CUT_OFF)


@dataclass(frozen=True)
class AttemptRecord:
    """What an attempt leaves behind."""

    number: int
    outcome: Outcome
    resumed_from: str | None
    rank: int | None = None
    node: str | None = None
    lost_iterations: int = 0
    """How many iterations came after the newest checkpoint, and have to be repeated."""
    message: str = ""


def stopped_by(attempts: Sequence[AttemptRecord]) -> Stopped | None:
    """Which limit of ``RunConfig`` has ended a training with these attempts, if one has.

    Example:
        >>> print(stopped_by([AttemptRecord(1, Outcome.NAN, None, message="loss is NaN at iteration 4")]))
        loss is NaN at iteration 4
    """
    last = attempts[-1] if attempts else None
    if last is None or last.outcome.value not in list(StopReason):
        return None
    return Stopped(StopReason(last.outcome.value), last.message)


def has_failed(attempts: Iterable[AttemptRecord]) -> bool:
    """Whether an attempt among these has failed, or somebody has ended it."""
    return any(each.outcome not in _SUCCESSES for each in attempts)


def attempt_tags(attempt: AttemptRecord) -> dict[str, str]:
    """The tags of a run that keep the record of its latest attempt, and which limit has ended it. A long message is cut."""
    text = json.dumps(vars(replace(attempt, message=attempt.message[:_LONGEST_MESSAGE])))
    stopped = stopped_by([attempt])
    return {
        tags.attempt(attempt.number): text,
        tags.ATTEMPTS: str(attempt.number),
        **({tags.STOPPED: stopped.reason.value} if stopped is not None else {}),
    }


def recorded_attempts(run_tags: Mapping[str, str]) -> list[AttemptRecord]:
    """The attempts whose records are among the tags of a run, in the order in which they were made."""
    facts = [json.loads(text) for tag, text in run_tags.items() if tags.is_attempt(tag)]
    records = [AttemptRecord(**{**each, "outcome": Outcome(each["outcome"])}) for each in facts]
    return sorted(records, key=lambda record: record.number)
