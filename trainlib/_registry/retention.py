"""Which checkpoints are the best, and which may be deleted. These functions only decide: they delete nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainlib.config import CheckpointConfig

if TYPE_CHECKING:
    from trainlib._execution.held import Held


@dataclass(frozen=True)
class SavedCheckpoint:
    """A committed checkpoint, as the registry knows it."""

    index: int
    iteration: int
    model_id: str
    location: str
    score: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    """How long the training had taken by then, in all attempts that led to it."""
    kind: str = ""
    """The framework whose class it was reported as, such as ``torch``."""
    held: Held | None = None
    """Its files in memory, if it is written nowhere. It has no id and no location then."""


def by_quality(saved: Sequence[SavedCheckpoint], config: CheckpointConfig) -> list[SavedCheckpoint]:
    """The checkpoints from worst to best. Without a score the newest is the best; NaN is worse than any number."""
    if config.checkpoint_score_attribute is None:
        return sorted(saved, key=lambda checkpoint: checkpoint.index)
    sign = 1.0 if config.checkpoint_score_order == "max" else -1.0

    def quality(checkpoint: SavedCheckpoint) -> tuple[bool, float, int]:
        score = checkpoint.score
        missing = score is None or math.isnan(score)
        return (not missing, sign * score if score is not None and not missing else 0.0, checkpoint.index)

    return sorted(saved, key=quality)


def best(saved: Sequence[SavedCheckpoint], config: CheckpointConfig) -> list[SavedCheckpoint]:
    """The N best that ``num_to_keep`` asks for, the best of them last."""
    ranked = by_quality(saved, config)
    return ranked if config.num_to_keep is None else ranked[max(0, len(ranked) - config.num_to_keep) :]


def expendable(saved: Sequence[SavedCheckpoint], config: CheckpointConfig) -> list[SavedCheckpoint]:
    """The checkpoints that may be deleted. The newest is never among them: a retry resumes from it."""
    if not saved:
        return []
    newest = max(saved, key=lambda checkpoint: checkpoint.index)
    keep = {checkpoint.index for checkpoint in best(saved, config)} | {newest.index}
    return [checkpoint for checkpoint in saved if checkpoint.index not in keep]
