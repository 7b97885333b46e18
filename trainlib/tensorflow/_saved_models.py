"""Models in TensorFlow's SavedModel format, with and without what Keras adds to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["FILE", "is_one", "load"]

FILE = "saved_model.pb"
_KERAS_FILE = "keras_metadata.pb"
_ENDPOINTS = ("serve", "serving_default")


def is_one(folder: Path) -> bool:
    """Whether a folder is a SavedModel."""
    return (folder / FILE).is_file()


def load(folder: Path, **load: Any) -> Any:
    """A Keras model of a SavedModel. One that Keras 2 has saved is as it was.

    Others, of ``model.export()`` and ``tf.saved_model.save``, have functions and weights, but no layers: such a model predicts,
    and cannot be trained.

    Raises:
        ValueError: it has no function to predict with.
    """
    if (folder / _KERAS_FILE).is_file():
        import tf_keras

        return tf_keras.models.load_model(str(folder), **load)
    import keras
    import tensorflow as tf

    signatures = tf.saved_model.load(str(folder)).signatures
    endpoint = next((name for name in _ENDPOINTS if name in signatures), None)
    if endpoint is None:
        raise ValueError(
            f"the SavedModel at {folder} has no function to predict with: it has no signature named {' or '.join(_ENDPOINTS)}. Save it "
            "with Keras's model.export(), or load it with tf.saved_model.load()"
        )
    return keras.Sequential([keras.layers.TFSMLayer(str(folder), call_endpoint=endpoint)])
