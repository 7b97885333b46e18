"""The trainer for TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.tensorflow._config import TensorflowConfig
from trainlib.tensorflow._room import ROOM
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["TensorflowTrainer"]


class TensorflowTrainer(DataParallelTrainer):
    """Runs a training function in many processes that are one TensorFlow cluster.

    In the function, ``tf.distribute.MultiWorkerMirroredStrategy()`` finds the others, and ``tf.keras`` is Keras 2.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.tensorflow import TensorflowTrainer
        >>> def train_func(config):
        ...     import tensorflow as tf
        ...
        ...     with tf.distribute.MultiWorkerMirroredStrategy().scope():
        ...         model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        ...         model.compile(optimizer="sgd", loss="mse")
        ...     for epoch in range(config["num_epochs"]):
        ...         history = model.fit(tf.ones((8, 4)), tf.ones((8, 1)), batch_size=4)
        ...         session.report({"loss": history.history["loss"][0]})
        >>> trainer = TensorflowTrainer(
        ...     train_func, train_loop_config={"num_epochs": 2}, scaling_config=ScalingConfig(num_workers=2)
        ... )
        >>> result = trainer.fit()  # doctest: +SKIP
    """

    room = ROOM

    def __init__(
        self,
        train_loop_per_worker: TrainLoop,
        *,
        train_loop_config: dict[str, Any] | None = None,
        tensorflow_config: TensorflowConfig | None = None,
        tensorflow_backend: TensorflowConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            tensorflow_config: how the workers become one TensorFlow cluster.
            tensorflow_backend: another spelling of ``tensorflow_config``, from one of Ray's guides.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        super().__init__(**ROOM.base_arguments(locals()))
