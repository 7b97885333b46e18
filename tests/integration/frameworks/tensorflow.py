"""TensorFlow, as the tests of all frameworks see it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from tests.integration.frameworks.regression import (
    COLLECTIVE_TIMEOUT_S,
    FEATURES,
    LEARNING_RATE,
    ROWS,
    initial_weight,
    own_rows,
)
from trainlib._execution.causes import Cause
from trainlib.tensorflow import ReportCheckpointCallback, TensorflowConfig, prepare_dataset_shard

SETTINGS = TensorflowConfig(timeout_s=COLLECTIVE_TIMEOUT_S)
CAUSES = {
    # TensorFlow lets no Python run while it waits, so the rank that waits is silent.
    "never joins": Cause.WORKER
}


def collective() -> Callable[[float], float]:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function
    def mean(value: Any) -> Any:
        def everywhere() -> Any:
            return tf.distribute.get_replica_context().all_reduce("MEAN", tf.identity(value))

        return strategy.run(everywhere)

    return lambda value: float(mean(tf.constant(value)))


def model_to_fit(tf: Any) -> Any:
    """The regression's model, not compiled yet."""
    start = tf.constant_initializer(initial_weight())
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer=start, input_shape=(FEATURES,))
    return tf.keras.Sequential([layer])


def fit(steps: int) -> list[float]:
    import tensorflow as tf

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = model_to_fit(tf)
        model.compile(tf.keras.optimizers.SGD(LEARNING_RATE), "mse")
    rows = prepare_dataset_shard(tf.data.Dataset.from_tensor_slices(own_rows()).batch(ROWS))
    model.fit(rows, epochs=steps, verbose=0)
    return model.get_weights()[0].flatten().tolist()


FITS = {"tensorflow": fit}


def train(epochs: int, die: Callable[[int], None]) -> None:
    """In Keras, where the callback does the reporting and the resuming."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(FEATURES,))])
        model.compile(tf.keras.optimizers.Adam(0.05), "mse")
    rows = prepare_dataset_shard(tf.data.Dataset.from_tensor_slices(own_rows()).batch(8))
    dying = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: die(epoch))
    model.fit(rows, epochs=epochs, verbose=0, callbacks=[ReportCheckpointCallback(), dying])


def world_size() -> int:
    return len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
