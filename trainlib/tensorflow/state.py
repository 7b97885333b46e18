"""TensorFlow in a worker. It cannot be set up twice in one process, so a worker is used once."""

from __future__ import annotations

import os

# Before TensorFlow is imported: multi-worker training works with Keras 2 alone, and this makes it `tf.keras`.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
# What it has to say about missing GPUs and processor features is not for people.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

tf.keras.layers  # noqa: B018  # loads Keras, which TensorFlow puts off


def snapshot() -> None:
    """Nothing: there is no way back."""


def restore(state: None) -> str:
    """Why this process cannot be handed on."""
    return "TensorFlow cannot be set up twice in one process"
