"""TensorFlow in a worker. It cannot be set up twice in one process, so a worker is used once."""

from __future__ import annotations

import os

# Before TensorFlow is imported: multi-worker training works with Keras 2 alone, and this makes it `tf.keras`.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
# Its own threads, as many as the worker has reserved processors; it does not go by OMP_NUM_THREADS.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", os.environ.get("OMP_NUM_THREADS", "0"))
# What it has to say about missing GPUs and processor features is not for people.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

tf.keras.layers  # noqa: B018  # loads Keras, which TensorFlow puts off


def snapshot() -> None:
    """Nothing: there is no way back."""


def restore(state: None) -> str:
    """Why this process cannot be handed on."""
    return "TensorFlow cannot be set up twice in one process"
