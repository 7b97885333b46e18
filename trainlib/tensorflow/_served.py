"""Loads Keras models from files, and predicts with them, also where trainlib is not installed.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_array

if TYPE_CHECKING:
    import pandas as pd

KERAS_FILE = "model.keras"
H5_FILE = "model.h5"
SAVED_MODEL = "saved_model"
SAVED_MODEL_FILE = "saved_model.pb"
_OF_KERAS_2 = "keras_metadata.pb"
_ENDPOINTS = ("serve", "serving_default")


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can."""
    if model_file(Path(folder)) is None:
        return "it has no whole Keras model, only weights or other files. Report a whole model, TensorflowCheckpoint.from_model(model)"
    return None


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts with the model in a folder: its outputs for the rows.

    The features are the column of arrays, if there is one, such as a Concatenator makes; else all columns, in their order.
    """
    file = model_file(Path(folder))
    if file is None:
        raise ValueError(f"this checkpoint cannot predict by itself: {why_not(folder)}")
    model = load_file(file, compile=False)

    def predict(rows: pd.DataFrame) -> Any:
        return model.predict(as_array(rows), verbose=0)

    return predict


def model_file(inside: Path) -> Path | None:
    """The file or folder of the model in a checkpoint. A folder that Keras or TensorFlow wrote is one, too."""
    for name in (KERAS_FILE, H5_FILE, SAVED_MODEL):
        if (inside / name).exists():
            return inside / name
    if is_saved_model(inside):
        return inside
    found = sorted([*inside.glob("*.keras"), *inside.glob("*.h5")])
    return found[0] if len(found) == 1 else None


def load_file(file: Path, **load: Any) -> Any:
    """The Keras model in a file or a SavedModel, of Keras 2 or 3."""
    if is_saved_model(file):
        return load_saved_model(file, **load)
    keras = keras_of(file)
    known = {**_wrapped_optimizers(file, keras), **load.pop("custom_objects", {})}
    return keras.models.load_model(str(file), custom_objects=known, **load)


def is_saved_model(folder: Path) -> bool:
    """Whether a folder is a SavedModel."""
    return (folder / SAVED_MODEL_FILE).is_file()


def load_saved_model(folder: Path, **load: Any) -> Any:
    """A Keras model of a SavedModel. One that Keras 2 has saved is as it was.

    Others, of ``model.export()`` and ``tf.saved_model.save``, have functions and weights, but no layers: such a model predicts,
    and cannot be trained.

    Raises:
        ValueError: it has no function to predict with.
    """
    if (folder / _OF_KERAS_2).is_file():
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


def keras_of(file: Path) -> Any:
    """The version of Keras that a model was saved with. Keras 2 and 3 do not read each other's files."""
    version = inside(file, "metadata.json")["keras_version"] if file.suffix == ".keras" else "2"
    if version.startswith("3"):
        import keras

        return keras
    import tf_keras

    return tf_keras


def inside(file: Path, name: str) -> Any:
    """A JSON file in a ``.keras`` file."""
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read(name))


def _wrapped_optimizers(file: Path, keras: Any) -> dict[str, Any]:
    """Keras's own optimizers by name, if Horovod's wrapper was saved. The wrapper has the name of what it wraps."""
    if file.suffix != ".keras" or "horovod" not in json.dumps(inside(file, "config.json").get("compile_config")):
        return {}
    return {name: kind for name, kind in vars(keras.optimizers).items() if isinstance(kind, type)}
