"""Whether a checkpoint can predict by itself, and if not, why."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib import _rooms as rooms
from trainlib.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["loader_of", "served_module", "why_not_of_kind", "why_not_served"]


def served_module(kind: str) -> str | None:
    """The module that loads models of checkpoints of a kind, for predicting. None if there is none.

    Example:
        >>> served_module("torch"), served_module("")
        ('trainlib.torch._served', None)
    """
    return rooms.load(kind).served if kind in rooms.ROOMS else None


def loader_of(kind: str) -> Callable[[str], Callable[[pd.DataFrame], Any]]:
    """What loads a model from the folder of a checkpoint of a kind, and returns what predicts for preprocessed rows."""
    module = served_module(kind)
    assert module is not None
    load: Callable[[str], Callable[[pd.DataFrame], Any]] = importlib.import_module(module).load
    return load


def why_not_of_kind(kind: str) -> str | None:
    """Why nobody can predict with any checkpoint of a kind by itself, as a part of a sentence. None if one may."""
    if served_module(kind) is not None:
        return None
    served = [room for name in rooms.ROOMS if (room := rooms.load(name)).served is not None]
    known = ", ".join(str(room.checkpoint).rpartition(":")[2] for room in served)
    return f"it was not reported as a checkpoint that knows its model, which is one of {known}"


def why_not_served(kind: str, location: str) -> str | None:
    """Why nobody can predict with a checkpoint by itself, as a part of a sentence. None if one can.

    No model is loaded, and no code in the checkpoint runs.

    Args:
        kind: Its kind.
        location: Where its files are.
    """
    module = served_module(kind)
    if module is None:
        return why_not_of_kind(kind)
    why_not: Callable[[str], str | None] | None = getattr(importlib.import_module(module), "why_not", None)
    if why_not is None:
        return None
    with Checkpoint(location).as_directory() as folder:
        return why_not(folder)
