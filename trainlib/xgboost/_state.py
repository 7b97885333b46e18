"""XGBoost in a worker. Its settings and its communicator belong to the thread of the training function, and end with it."""

from __future__ import annotations

import xgboost.tracker  # noqa: F401

from trainlib.xgboost import _config as config


def snapshot() -> None:
    """Nothing has to be restored."""


def restore(state: None) -> str | None:
    """Returns None, or the reason why this worker cannot be reused."""
    return "XGBoost's tracker is still running" if config._tracker is not None else None
