"""The Keras callback: what it reports, what it saves, and that a model can be had back from it."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from trainlib import FailureConfig, Result, RunConfig, ScalingConfig, session
from trainlib.horovod import HorovodTrainer
from trainlib.tensorflow import ReportCheckpointCallback, TensorflowCheckpoint, TensorflowTrainer
from trainlib.tensorflow._checkpoint import Progress

FEATURES = np.arange(32, dtype="float32").reshape(8, 4) / 32


def fit(config: dict) -> list | None:
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(tf.keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    callback = ReportCheckpointCallback(**config["callback"])
    model.fit(FEATURES, FEATURES.sum(1), epochs=3, verbose=0, callbacks=[callback])
    assert isinstance(callback, tf.keras.callbacks.Callback)
    if not config["callback"].get("report_metrics_on"):
        return model.predict(FEATURES, verbose=0).flatten().tolist()
    return None


def generated_files() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("__autograph_generated_file*"))


def fitting(**callback) -> TensorflowTrainer:
    return TensorflowTrainer(fit, train_loop_config={"callback": callback})


def fit_side_by_side(*trainers: TensorflowTrainer) -> list[Result]:
    """Trainings of one worker each, most of whose time is TensorFlow's import."""
    with ThreadPoolExecutor(len(trainers)) as threads:
        return list(threads.map(lambda trainer: trainer.fit(), trainers))


@pytest.fixture(scope="module")
def first_and_chosen():
    before = generated_files()
    results = fit_side_by_side(
        fitting(), fitting(metrics={"train_loss": "loss"}, report_metrics_on="epoch_end", checkpoint_on="train_end")
    )
    assert generated_files() <= before, "TensorFlow's workers clear up after themselves"
    return results


@pytest.fixture(scope="module")
def first(first_and_chosen):
    """One training, which several tests look at or go on from."""
    return first_and_chosen[0]


def test_every_epoch_is_reported_and_saved_and_the_model_can_be_had_back(first):
    result = first
    assert result.metrics_dataframe[["loss", "mae"]].shape == (3, 2)
    assert len(result.best_checkpoints) == 3

    saved = TensorflowCheckpoint(result.checkpoint.path)
    assert saved.progress == Progress(fit=0, epochs=3)
    model = saved.get_model()
    np.testing.assert_allclose(model.predict(FEATURES, verbose=0).flatten(), result.returned[0], rtol=1e-6)
    assert int(model.optimizer.iterations) == 3, "with the state of its optimizer"


def test_metrics_are_chosen_and_renamed_and_events_too(first_and_chosen):
    _, result = first_and_chosen
    table = result.metrics_dataframe
    assert "mae" not in table
    assert table["train_loss"].notna().sum() >= 3
    assert len(table) == 4, "three epochs, and the end of the training with its checkpoint"
    assert len(result.best_checkpoints) == 1


def test_a_metric_that_keras_does_not_have():
    with pytest.raises(KeyError, match=r"Keras has no metric 'accuracy'\. It has loss, mae"):
        ReportCheckpointCallback(metrics=["accuracy"])._select_metrics({"loss": 1.0, "mae": 2.0})


def test_an_event_that_keras_does_not_have():
    with pytest.raises(ValueError, match=r"checkpoint_on has 'epoch_ends'\. Use any of epoch_begin, epoch_end"):
        ReportCheckpointCallback(checkpoint_on="epoch_ends")


def fits_epoch_by_epoch(config: dict) -> int:
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])  # knows its input only by the first batch
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    for _ in range(config["epochs"]):
        model.fit(FEATURES, FEATURES.sum(1), epochs=1, verbose=0, callbacks=[ReportCheckpointCallback()])
    return int(model.optimizer.iterations)


def test_a_function_that_fits_epoch_by_epoch_goes_on_with_the_fit_after_the_last():
    first = TensorflowTrainer(fits_epoch_by_epoch, train_loop_config={"epochs": 2}).fit()
    again = TensorflowTrainer(
        fits_epoch_by_epoch, train_loop_config={"epochs": 3}, resume_from_checkpoint=first.checkpoint
    ).fit()
    assert again.metrics_dataframe["loss"].notna().sum() == 1
    assert again.returned == [3], "steps of the optimizer, those of the first training included"


def fits_twice(config: dict) -> list[int]:
    """Trains, then fine-tunes for fewer epochs, and dies in the middle of that."""
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    dying = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epoch == 1 and die_once())
    first = model.fit(FEATURES, FEATURES.sum(1), epochs=4, verbose=0, callbacks=[ReportCheckpointCallback()])
    second = model.fit(FEATURES, FEATURES.sum(1), epochs=3, verbose=0, callbacks=[ReportCheckpointCallback(), dying])
    return [len(first.epoch), len(second.epoch)]


def die_once() -> None:
    if session.get_context().get_attempt() == 1:
        time.sleep(1.0)  # the checkpoint of this epoch is committed by then
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_retry_goes_on_in_the_fit_that_was_under_way(curve):
    retry = RunConfig(failure_config=FailureConfig(max_failures=1))
    result = TensorflowTrainer(fits_twice, train_loop_config={}, run_config=retry).fit()
    assert result.attempts == 2
    assert result.returned == [[4, 1]], "the first fit again, and the last epoch of the second"
    assert [step for step, _ in curve(result.run_id, "loss")] == [1, 2, 3, 4, 5, 6, 7]


def fits_on(config: dict) -> int:
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("adam", "mse")
    if config["itself"]:
        session.get_checkpoint()
    history = model.fit(FEATURES, FEATURES.sum(1), epochs=5, verbose=0, callbacks=[ReportCheckpointCallback()])
    return len(history.epoch)


def test_a_training_goes_on_from_the_checkpoint_of_another(first):
    second, third = fit_side_by_side(
        *(
            TensorflowTrainer(fits_on, train_loop_config={"itself": itself}, resume_from_checkpoint=first.checkpoint)
            for itself in (False, True)
        )
    )
    assert second.returned == [2], "three epochs of five were done"
    assert TensorflowCheckpoint(second.checkpoint.path).progress == Progress(fit=0, epochs=5)
    assert third.returned == [5], "who asks for the checkpoint resumes from it himself"


def fits_with_horovod() -> list[float]:
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf

    hvd.init()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.1)), "mse")
    together = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    model.fit(FEATURES, FEATURES.sum(1), epochs=2, verbose=0, callbacks=[together, ReportCheckpointCallback()])
    return model.predict(FEATURES, verbose=0).flatten().tolist()


def test_a_model_that_was_trained_with_horovod_can_be_had_back():
    result = HorovodTrainer(fits_with_horovod, scaling_config=ScalingConfig(num_workers=2)).fit()
    model = TensorflowCheckpoint(result.checkpoint.path).get_model()
    np.testing.assert_allclose(model.predict(FEATURES, verbose=0).flatten(), result.returned[0], rtol=1e-6)
