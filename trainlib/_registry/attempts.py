"""What an attempt leaves in the registry: how it ended, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AttemptRecord", "Outcome"]


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
