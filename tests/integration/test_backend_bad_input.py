"""What a user may get wrong with TensorFlow and Horovod, and what the error says."""

from __future__ import annotations

import socket

import pytest

from trainlib import ScalingConfig, TrainingFailedError, _rooms, session
from trainlib._execution.causes import Cause
from trainlib.errors import KerasVersionError, PortsTakenError, TooFewWorkersError
from trainlib.horovod import HorovodConfig, HorovodTrainer
from trainlib.tensorflow import TensorflowConfig, TensorflowTrainer
from trainlib.torch import TorchConfig, TorchTrainer

TWO = ScalingConfig(num_workers=2)


def does_nothing() -> None:
    session.report({"done": 1})


# -- known before anything starts ------------------------------------------------------------------------


def test_without_tensorflow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(_rooms, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs tensorflow and tf_keras: pip install 'trainlib\[tensorflow\]'"):
        TensorflowTrainer(does_nothing)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (TorchTrainer, {"torch_config": TensorflowConfig()}),
        (TensorflowTrainer, {"tensorflow_config": TorchConfig()}),
        (HorovodTrainer, {"horovod_config": TorchConfig()}),
    ],
)
def test_the_settings_of_another_framework_are_refused(kind, arguments):
    with pytest.raises(TypeError, match=r"_config is a \w+Config: pass a \w+Config"):
        kind(does_nothing, **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (TensorflowTrainer, {"tensorflow_config": TensorflowConfig(), "tensorflow_backend": TensorflowConfig()}),
        (HorovodTrainer, {"horovod_config": HorovodConfig(), "tensorflow_backend": HorovodConfig()}),
    ],
)
def test_one_argument_in_two_spellings_is_refused(kind, arguments):
    with pytest.raises(ValueError, match="are the same argument: pass one of them"):
        kind(does_nothing, **arguments)


# -- known when the workers are there ------------------------------------------------------------------------


def failure_of(training) -> TrainingFailedError:
    with pytest.raises(TrainingFailedError) as caught:
        training.fit()
    assert caught.value.cause is Cause.USER, "it would fail again, so it is not retried"
    return caught.value


@pytest.mark.parametrize("backend", ["tensorflow", "horovod"])
def test_a_port_range_that_is_taken(backend):
    with socket.create_server(("", 0)) as taken:
        ports = (taken.getsockname()[1],) * 2
        training = (
            TensorflowTrainer(does_nothing, tensorflow_config=TensorflowConfig(port_range=ports), scaling_config=TWO)
            if backend == "tensorflow"
            else HorovodTrainer(does_nothing, horovod_config=HorovodConfig(port_range=ports), scaling_config=TWO)
        )
        failure = failure_of(training)
    assert f"setting up {backend} raised" in str(failure)
    assert f"no port of {ports} is free on" in str(failure)
    assert isinstance(failure.__cause__, PortsTakenError)


def uses_a_strategy() -> None:
    import tensorflow as tf

    tf.distribute.MultiWorkerMirroredStrategy()


def test_one_worker_where_the_strategy_needs_two():
    failure = failure_of(TensorflowTrainer(uses_a_strategy))
    assert isinstance(failure.__cause__, TooFewWorkersError)
    assert "num_workers=2" in str(failure)


def mirrors_on_one_worker() -> None:
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        model.compile("sgd", "mse")
    model.fit(tf.ones((8, 4)), tf.ones((8, 1)), verbose=0)
    session.report({"replicas": strategy.num_replicas_in_sync})


def test_one_worker_is_enough_for_a_mirrored_strategy():
    assert TensorflowTrainer(mirrors_on_one_worker).fit().metrics["replicas"] == 1


def makes_a_keras_3_model() -> None:
    import keras
    import tensorflow as tf

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        keras.Sequential([keras.layers.Dense(1)])


def test_a_keras_3_model_under_a_strategy_of_several_workers():
    failure = failure_of(TensorflowTrainer(makes_a_keras_3_model, scaling_config=TWO))
    assert isinstance(failure.__cause__, KerasVersionError)
    assert "build the model from `tf.keras`" in str(failure)


def wraps_a_keras_3_optimizer() -> None:
    import horovod.tensorflow.keras as hvd
    import keras

    hvd.init()
    hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))


def test_horovod_with_an_optimizer_of_keras_3():
    failure = failure_of(HorovodTrainer(wraps_a_keras_3_optimizer, scaling_config=TWO))
    assert isinstance(failure.__cause__, KerasVersionError)
    assert "does not average" in str(failure)
    assert "hvd.grouped_allreduce" in str(failure)


def averages_with_a_tape() -> list[float]:
    """What that error recommends for Keras 3."""
    import horovod.tensorflow as hvd
    import keras
    import tensorflow as tf

    hvd.init()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = keras.optimizers.SGD(0.1)
    features = tf.ones((4, 2)) * (hvd.rank() + 1.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(features) ** 2)
        gradients = hvd.grouped_allreduce(tape.gradient(loss, model.trainable_variables))
        optimizer.apply(gradients, model.trainable_variables)
    session.report({"done": 1})
    return [float(number) for weights in model.get_weights() for number in weights.flatten()]


def test_horovod_averages_for_keras_3_with_a_tape():
    first, second = HorovodTrainer(averages_with_a_tape, scaling_config=TWO).fit().returned
    assert first == second
    assert first != [1.0, 1.0, 0.0]
