"""What an attempt leaves in the registry: how it ended, and what it cost. Each record is a tag of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from trainlib._registry import tags

__all__ = ["AttemptRecord", "Outcome", "attempt_tags", "recorded_attempts"]

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
    LOST = "lost"
    """The process that coordinated it ended before it could say how the attempt went."""


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


def attempt_tags(attempt: AttemptRecord) -> dict[str, str]:
    """The tags of a run that keep the record of its latest attempt. A long message is cut."""
    text = json.dumps(vars(replace(attempt, message=attempt.message[:_LONGEST_MESSAGE])))
    return {tags.attempt(attempt.number): text, tags.ATTEMPTS: str(attempt.number)}


def recorded_attempts(run_tags: Mapping[str, str]) -> list[AttemptRecord]:
    """The attempts whose records are among the tags of a run, in the order in which they were made."""
    facts = [json.loads(text) for tag, text in run_tags.items() if tags.is_attempt(tag)]
    records = [AttemptRecord(**{**each, "outcome": Outcome(each["outcome"])}) for each in facts]
    return sorted(records, key=lambda record: record.number)
