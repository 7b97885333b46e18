"""One model in every framework: linear regression, with all of a rank's rows in one batch."""

from __future__ import annotations

import numpy as np

from trainlib import session

ROWS, FEATURES = 64, 4
LEARNING_RATE = 0.1
COLLECTIVE_TIMEOUT_S = 6
"""After so long, a rank that is missing in a collective is an error in these tests."""


def table() -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of all rows."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(ROWS, FEATURES)).astype("float32")
    return features, (features @ np.arange(1.0, FEATURES + 1, dtype="float32"))[:, None]


def own_rows() -> tuple[np.ndarray, np.ndarray]:
    """Inside a training function: the rows of this rank."""
    features, targets = table()
    rank, size = session.get_world_rank(), session.get_world_size()
    return features[rank::size], targets[rank::size]


def initial_weight() -> float:
    """Inside a training function: what this rank starts with, unlike every other one."""
    return 0.5 + session.get_world_rank()


def fit_in_one_process(steps: int) -> np.ndarray:
    """What rank 0's initial weights become with the full batch and no framework."""
    features, targets = table()
    weights = np.full((FEATURES, 1), 0.5)
    for _ in range(steps):
        weights -= LEARNING_RATE * 2 / ROWS * features.T @ (features @ weights - targets)
    return weights.flatten()
