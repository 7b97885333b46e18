"""Which checkpoints of a run stay on disk."""

from __future__ import annotations

from trainlib.config import CheckpointConfig

__all__ = ["CheckpointStrategy"]


class CheckpointStrategy(CheckpointConfig):
    """Which checkpoints of a run stay on disk: all of them, the N best, or, with ``num_to_keep=0``, none.

    It is a ``CheckpointConfig`` under RaySGD's name.

    Example:
        >>> from trainlib.sgd import CheckpointStrategy
        >>> CheckpointStrategy(num_to_keep=0).num_to_keep
        0
    """
