"""Checkpoints as the registry keeps them, without a training."""

from __future__ import annotations

from trainlib import Checkpoint
from trainlib import _storage as storage
from trainlib._registry.retention import SavedCheckpoint

__all__ = ["saved"]


def saved(checkpoint: Checkpoint, folder: str, name: str = "m-1") -> SavedCheckpoint:
    """A checkpoint in a folder or at a URI, below the folder of its logged model."""
    location = storage.join(folder, name, "artifacts", "checkpoint_000002")
    checkpoint.to_uri(location)
    return SavedCheckpoint(
        index=2, iteration=3, model_id=name, location=location, score=None, metrics={}, kind=type(checkpoint).kind
    )
