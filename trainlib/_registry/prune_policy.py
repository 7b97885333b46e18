"""Which checkpoints of the registry a policy gives up. These functions only decide: they delete nothing.

A checkpoint that somebody may need stays, whatever the policy says: see :class:`Reason`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from trainlib._registry.retention import SavedCheckpoint, best
from trainlib.config import CheckpointConfig

__all__ = ["DatedCheckpoint", "Policy", "Reason", "RunCheckpoints", "choose"]


class Reason(StrEnum):
    """Why a checkpoint stays."""

    RUNNING = "running"
    """Its training runs, or may: another process reads and deletes its checkpoints."""
    RESUMABLE = "resumable"
    """It is the newest of a run that is not over: whoever continues the run starts from it."""
    REGISTERED = "registered"
    """A version of a registered model refers to it, and so may an alias."""
    FORKED = "forked"
    """A training that was forked from it is not over, and may have none of its own yet."""
    KEPT = "kept"
    """The policy keeps it: it is among the best or newest of its run."""
    YOUNG = "young"
    """The policy keeps it: it is not old enough."""


@dataclass(frozen=True)
class Policy:
    """Which checkpoints are kept of each run."""

    keep: int = 3
    """How many of each run stay."""
    metric: str | None = None
    """What says which are the best. None: the newest stay."""
    mode: Literal["max", "min"] = "max"
    older_than_days: float = 0.0
    """Younger ones stay."""
    experiment: str | None = None
    """Only those of this experiment. None: of all."""


@dataclass(frozen=True)
class DatedCheckpoint:
    """A checkpoint, and when it was saved."""

    saved: SavedCheckpoint
    time: datetime


@dataclass(frozen=True)
class RunCheckpoints:
    """A run, and its checkpoints by number."""

    run_id: str
    name: str
    is_running: bool
    is_over: bool
    """Whether it has finished, so that nobody needs to continue it."""
    checkpoints: tuple[DatedCheckpoint, ...]


def choose(
    run: RunCheckpoints, policy: Policy, *, registered: frozenset[str], forked: frozenset[str], now: datetime
) -> dict[str, Reason | None]:
    """What becomes of each checkpoint of a run, by its id: the reason why it stays, or None if it goes."""
    saved = [each.saved for each in run.checkpoints]
    newest = saved[-1].model_id if saved else None
    kept = {each.model_id for each in _best(saved, policy)}
    oldest_young = now - timedelta(days=policy.older_than_days)

    def reason(each: DatedCheckpoint) -> Reason | None:
        model_id = each.saved.model_id
        for holds, why in (
            (run.is_running, Reason.RUNNING),
            (model_id == newest and not run.is_over, Reason.RESUMABLE),
            (model_id in registered, Reason.REGISTERED),
            (model_id in forked, Reason.FORKED),
            (model_id in kept, Reason.KEPT),
            (each.time > oldest_young, Reason.YOUNG),
        ):
            if holds:
                return why
        return None

    return {each.saved.model_id: reason(each) for each in run.checkpoints}


def _best(saved: Sequence[SavedCheckpoint], policy: Policy) -> list[SavedCheckpoint]:
    if policy.metric is None:
        config = CheckpointConfig(num_to_keep=policy.keep)
        return best(saved, config)
    config = CheckpointConfig(
        num_to_keep=policy.keep, checkpoint_score_attribute=policy.metric, checkpoint_score_order=policy.mode
    )
    return best([replace(each, score=each.metrics.get(policy.metric)) for each in saved], config)
