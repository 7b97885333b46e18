"""TensorFlow in a worker. It cannot be set up twice in one process, so a worker is never reused."""

from __future__ import annotations

import os

# Before TensorFlow is imported: only Keras 2 trains on several workers, and this makes it `tf.keras`.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
# As many threads as the worker has reserved CPUs. TensorFlow ignores OMP_NUM_THREADS.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", os.environ.get("OMP_NUM_THREADS", "0"))
# Hide its messages about missing GPUs and CPU features.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

tf.keras.layers  # noqa: B018  # loads Keras, which TensorFlow does only on first use


def snapshot() -> None:
    """Nothing: TensorFlow cannot be reset."""


def restore(state: None) -> str:
    """The reason why this worker cannot be reused."""
    return "TensorFlow cannot be set up twice in one process"
