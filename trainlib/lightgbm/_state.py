"""LightGBM in a worker. Its network belongs to the thread of the training function, and ends with it."""

from __future__ import annotations

import lightgbm  # noqa: F401

from trainlib.lightgbm import _config as config


def snapshot() -> None:
    """Nothing has to be restored."""


def restore(state: None) -> str | None:
    """Returns None, or the reason why this worker cannot be reused."""
    return "LightGBM's network still exists" if config._params is not None else None
