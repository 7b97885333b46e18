"""The trainer for TensorFlow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.tensorflow._config import TensorflowConfig
from trainlib.trainer import DataParallelTrainer, TrainLoop, backend_config_of

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

    _backend_argument = "tensorflow_config"

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
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        """A trainer; ``tensorflow_config`` and ``tensorflow_backend`` are two spellings of one argument."""
        if missing := [name for name in ("tensorflow", "tf_keras") if find_spec(name) is None]:
            raise ImportError(f"TensorflowTrainer needs {' and '.join(missing)}: pip install 'trainlib[tensorflow]'")
        super().__init__(
            train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=backend_config_of(
                TensorflowConfig, tensorflow_config=tensorflow_config, tensorflow_backend=tensorflow_backend
            ),
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )
