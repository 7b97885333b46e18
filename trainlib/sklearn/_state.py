"""scikit-learn's global state in a worker. It is restored before the worker is reused."""

from __future__ import annotations

from typing import Any

import sklearn
import sklearn.metrics
import sklearn.model_selection

# What scikit-learn itself loads when an estimator needs it.
BROUGHT = ("joblib", "scipy", "sklearn", "threadpoolctl")


def snapshot() -> dict[str, Any]:
    """The present settings."""
    return dict(sklearn.get_config())


def restore(state: dict[str, Any]) -> str | None:
    """Restore the settings in ``state``. Returns None: such a worker can always be reused."""
    sklearn.set_config(**state)
    return None
