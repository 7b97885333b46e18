"""Checkpoints of Keras models."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trainlib._serving.preprocessing import DICT_FILE
from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError, InvalidArgumentError
from trainlib.tensorflow import _served as served
from trainlib.tensorflow._guard import is_keras_3

if TYPE_CHECKING:
    import tensorflow as tf
    from ray.data.preprocessor import Preprocessor

__all__ = ["TensorflowCheckpoint"]

_PROGRESS_FILE = "progress.json"
_KEYS = ("model", "model_weights")
"""Where a dict has the weights."""


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

    kind = "tensorflow"

    @classmethod
    def from_model(
        cls, model: tf.keras.Model, *, preprocessor: Preprocessor | None = None, progress: Progress | None = None
    ) -> Self:
        """A checkpoint of a model, and of how far its training has come.

        Args:
            model: The model, of Keras 2 or Keras 3.
            preprocessor: A fitted preprocessor, to be applied before predicting.
            progress: How far its training has come.
        """
        made = cls._empty(preprocessor)
        # Explicit, because Keras 2 ignores the suffix of the file from the second save on.
        kind = {} if is_keras_3(model) else {"save_format": "keras_v3"}
        model.save(str(Path(made.path) / served.KERAS_FILE), **kind)
        if progress is not None:
            (Path(made.path) / _PROGRESS_FILE).write_text(json.dumps(asdict(progress)))
        return made

    @classmethod
    def from_h5(cls, file_path: str | Path, *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a file that ``model.save("model.h5")`` wrote."""
        if not Path(file_path).is_file():
            raise CheckpointNotFoundError(
                f"there is no file at {file_path}. Write it first: model.save({str(file_path)!r})"
            )
        made = cls._empty(preprocessor)
        shutil.copy(file_path, Path(made.path) / served.H5_FILE)
        return made

    @classmethod
    def from_saved_model(cls, dir_path: str | Path, *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a folder that ``model.save(folder)``, ``model.export(folder)`` or ``tf.saved_model.save`` wrote."""
        if not (Path(dir_path) / served.SAVED_MODEL_FILE).is_file():
            raise CheckpointNotFoundError(f"{dir_path} is not a SavedModel: it has no {served.SAVED_MODEL_FILE}")
        made = cls._empty(preprocessor)
        shutil.copytree(dir_path, Path(made.path) / served.SAVED_MODEL)
        return made

    @classmethod
    def _empty(cls, preprocessor: Preprocessor | None) -> Self:
        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-tensorflow-"))
        made.set_preprocessor(preprocessor)
        return made

    def get_model(
        self, model_definition: tf.keras.Model | Callable[[], tf.keras.Model] | None = None, **load: Any
    ) -> tf.keras.Model:
        """The model, compiled as it was saved.

        Args:
            model_definition: A model to load the weights into, or what makes one: a function without arguments, or a class.
                A checkpoint of a dict needs it: its weights are under the key ``model`` or ``model_weights``.
            load: Passed to Keras's ``load_model``, e.g. ``custom_objects``.

        Raises:
            UntrustedCheckpointError: it is in a format that can contain code, of somebody who is not known to be trusted.
        """
        model = _made(model_definition)
        if model is not None:
            self.load_into(model)
            return model
        if self._is_dict():
            raise ValueError(
                "this checkpoint holds weights, not a model: pass what makes the model, get_model(build_model)"
            )
        with self.as_directory() as folder:
            file = self._model_in(folder)
            if file.suffix != ".keras":  # of which Keras itself loads no code
                self.require_trust()
            return served.load_file(file, **load)

    def load_into(self, model: tf.keras.Model) -> None:
        """Load the weights into a model, and the state of the optimizer if it is compiled and the checkpoint has that."""
        if self._is_dict():
            model.set_weights(self._weights())
            return
        with self.as_directory() as folder:
            file = self._model_in(folder)
            if served.is_saved_model(file):
                self.require_trust()
                model.set_weights(served.load_saved_model(file, compile=False).get_weights())
                return
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

    def _is_dict(self) -> bool:
        return self._data is not None or DICT_FILE in self._read(DICT_FILE)

    def _weights(self) -> Any:
        saved = self.to_dict()
        for key in _KEYS:
            if key in saved:
                return saved[key]
        raise CheckpointNotFoundError(
            f"this checkpoint has no weights of a Keras model: its dict has neither {_KEYS[0]!r} nor {_KEYS[1]!r}. It has "
            f"{', '.join(map(repr, saved)) or 'nothing'}"
        )

    def _model_in(self, folder: str) -> Path:
        """The file or folder of the model. A folder that Keras or TensorFlow wrote is one, too."""
        if (found := served.model_file(Path(folder))) is not None:
            return found
        raise CheckpointNotFoundError(
            f"{self} has no Keras model: it was not saved as a TensorflowCheckpoint. Its to_dict() shows what it has"
        )


def _made(definition: Any) -> Any:
    """A model, from itself or from what makes it. A model can be called as well, but not without an input."""
    if definition is None or (hasattr(definition, "get_weights") and not isinstance(definition, type)):
        return definition
    if not callable(definition):
        raise InvalidArgumentError(
            f"model_definition is a {type(definition).__name__}: pass a Keras model, or a function that makes one"
        )
    return definition()


def _build(model: Any, file: Path) -> None:
    """Create the variables of a model that would get its input shape from the first batch. The file has the shape."""
    config = served.inside(file, "config.json") if file.suffix == ".keras" else {}
    shape = (config.get("build_config") or {}).get("input_shape")
    if shape is None:
        raise ValueError(
            f"the checkpoint cannot be loaded: {type(model).__name__} has no variables yet. Build it before fit(), e.g. with "
            "model.build((None, number_of_features))"
        )
    strategy = getattr(model, "distribute_strategy", None)
    with strategy.scope() if strategy is not None else nullcontext():
        model.build(tuple(shape))
