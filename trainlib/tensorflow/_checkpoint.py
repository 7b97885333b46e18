"""Checkpoints of Keras models."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
import zipfile
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError
from trainlib.tensorflow._guard import is_keras_3

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["TensorflowCheckpoint"]

_KERAS_FILE = "model.keras"
_H5_FILE = "model.h5"
_SAVED_MODEL = "saved_model"
_PROGRESS_FILE = "progress.json"


@dataclass(frozen=True)
class Progress:
    """How far a training function has come in its calls of ``model.fit``."""

    fit: int
    """Which call of ``fit`` this is, from 0."""
    epochs: int
    """How many epochs of that call are done."""


class TensorflowCheckpoint(Checkpoint):
    """A checkpoint of a Keras model, with the state of its optimizer.

    Example:
        >>> import tf_keras
        >>> from trainlib.tensorflow import TensorflowCheckpoint
        >>> model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(4,))])
        >>> [weights.shape for weights in TensorflowCheckpoint.from_model(model).get_model().get_weights()]
        [(4, 1), (1,)]
    """

    @classmethod
    def from_model(cls, model: tf.keras.Model, *, progress: Progress | None = None) -> TensorflowCheckpoint:
        """A checkpoint of a model, and of how far its training has come."""
        made = cls._empty()
        # Explicit, because Keras 2 ignores the suffix of the file from the second save on.
        kind = {} if is_keras_3(model) else {"save_format": "keras_v3"}
        model.save(str(Path(made.path) / _KERAS_FILE), **kind)
        if progress is not None:
            (Path(made.path) / _PROGRESS_FILE).write_text(json.dumps(asdict(progress)))
        return made

    @classmethod
    def from_h5(cls, file_path: str) -> TensorflowCheckpoint:
        """A checkpoint of a file that ``model.save("model.h5")`` wrote."""
        if not Path(file_path).is_file():
            raise CheckpointNotFoundError(f"there is no file at {file_path}. Write it first: model.save({file_path!r})")
        made = cls._empty()
        shutil.copy(file_path, Path(made.path) / _H5_FILE)
        return made

    @classmethod
    def from_saved_model(cls, dir_path: str) -> TensorflowCheckpoint:
        """A checkpoint of a folder that ``model.save(folder)`` or ``tf.saved_model.save`` wrote."""
        if not (Path(dir_path) / "saved_model.pb").is_file():
            raise CheckpointNotFoundError(f"{dir_path} is not a SavedModel: it has no saved_model.pb")
        made = cls._empty()
        shutil.copytree(dir_path, Path(made.path) / _SAVED_MODEL)
        return made

    @classmethod
    def _empty(cls) -> TensorflowCheckpoint:
        folder = tempfile.mkdtemp(prefix="trainlib-tensorflow-")
        made = cls(folder)
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)  # report() makes its own copy
        return made

    def get_model(self, **load: Any) -> tf.keras.Model:
        """The model, compiled as it was saved. ``load`` is passed to Keras's ``load_model``, e.g. ``custom_objects``."""
        with self.as_directory() as folder:
            file = self._model_in(folder)
            keras = _keras_of(file)
            known = {**_wrapped_optimizers(file, keras), **load.pop("custom_objects", {})}
            return keras.models.load_model(str(file), custom_objects=known, **load)

    def load_into(self, model: tf.keras.Model) -> None:
        """Load the weights and the state of the optimizer into a compiled model."""
        with self.as_directory() as folder:
            file = self._model_in(folder)
            if not model.built:
                _build(model, file)
            if getattr(model, "optimizer", None) is not None:  # its variables do not exist before its first step
                model.optimizer.build(model.trainable_variables)
            model.load_weights(str(file))

    @property
    def progress(self) -> Progress | None:
        """How far the training had come. None if that was not saved."""
        with self.as_directory() as folder:
            file = Path(folder) / _PROGRESS_FILE
            return Progress(**json.loads(file.read_text())) if file.exists() else None

    def _model_in(self, folder: str) -> Path:
        for name in (_KERAS_FILE, _H5_FILE, _SAVED_MODEL):
            if (Path(folder) / name).exists():
                return Path(folder) / name
        raise CheckpointNotFoundError(
            f"{self.path} has no Keras model: it was not saved as a TensorflowCheckpoint. Its to_dict() shows what it has"
        )


def _keras_of(file: Path) -> Any:
    """The version of Keras that a model was saved with. Keras 2 and 3 do not read each other's files."""
    version = _inside(file, "metadata.json")["keras_version"] if file.suffix == ".keras" else "2"
    if version.startswith("3"):
        import keras

        return keras
    import tf_keras

    return tf_keras


def _inside(file: Path, name: str) -> Any:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read(name))


def _wrapped_optimizers(file: Path, keras: Any) -> dict[str, Any]:
    """Keras's own optimizers by name, if Horovod's wrapper was saved. The wrapper has the name of what it wraps."""
    if file.suffix != ".keras" or "horovod" not in json.dumps(_inside(file, "config.json").get("compile_config")):
        return {}
    return {name: kind for name, kind in vars(keras.optimizers).items() if isinstance(kind, type)}


def _build(model: Any, file: Path) -> None:
    """Create the variables of a model that would get its input shape from the first batch. The file has the shape."""
    config = _inside(file, "config.json") if file.suffix == ".keras" else {}
    shape = (config.get("build_config") or {}).get("input_shape")
    if shape is None:
        raise ValueError(
            f"the checkpoint cannot be loaded: {type(model).__name__} has no variables yet. Build it before fit(), e.g. with "
            "model.build((None, number_of_features))"
        )
    strategy = getattr(model, "distribute_strategy", None)
    with strategy.scope() if strategy is not None else nullcontext():
        model.build(tuple(shape))
