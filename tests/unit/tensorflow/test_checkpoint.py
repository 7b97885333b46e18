"""Checkpoints of Keras 2 and Keras 3 models."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from trainlib.errors import CheckpointNotFoundError
from trainlib.tensorflow import TensorflowCheckpoint
from trainlib.tensorflow._checkpoint import Progress


@pytest.fixture(params=["tf_keras", "keras"])
def keras(request):
    """Keras 2 and Keras 3."""
    return importlib.import_module(request.param)


def model_of(keras):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(np.ones((8, 4)), np.ones(8), verbose=0)
    return model


def test_a_model_is_restored_with_its_optimizer(keras):
    model = model_of(keras)
    saved = TensorflowCheckpoint.from_model(model, progress=Progress(fit=0, epochs=4))
    loaded = saved.get_model()
    assert type(loaded).__module__.partition(".")[0] == keras.__name__
    for mine, its in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)
    assert saved.progress == Progress(fit=0, epochs=4)


def test_it_is_loaded_into_an_existing_model(keras):
    model, other = model_of(keras), model_of(keras)
    other.fit(np.ones((8, 4)), np.zeros(8), epochs=3, verbose=0)
    TensorflowCheckpoint.from_model(model).load_into(other)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
    assert int(other.optimizer.iterations) == 1


def test_it_is_loaded_into_a_model_that_is_not_built_yet(keras):
    model = model_of(keras)
    other = keras.Sequential([keras.layers.Dense(1)])
    other.compile(keras.optimizers.Adam(0.1), "mse")
    TensorflowCheckpoint.from_model(model).load_into(other)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


def test_saving_twice_gives_the_same_format(keras):
    """Without an explicit format, Keras 2 would write HDF5 from the second save on."""
    model = model_of(keras)
    for _ in range(2):
        assert TensorflowCheckpoint.from_model(model).get_model().get_weights()[0].shape == (4, 1)


def test_h5_and_saved_models_become_checkpoints(tmp_path):
    import tf_keras

    model = model_of(tf_keras)
    model.save(str(tmp_path / "model.h5"))
    model.save(str(tmp_path / "saved"), save_format="tf")
    for saved in (
        TensorflowCheckpoint.from_h5(str(tmp_path / "model.h5")),
        TensorflowCheckpoint.from_saved_model(str(tmp_path / "saved")),
    ):
        np.testing.assert_array_equal(saved.get_model().get_weights()[0], model.get_weights()[0])
        assert saved.progress is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="no file at"):
        TensorflowCheckpoint.from_h5(str(tmp_path / "missing.h5"))
    with pytest.raises(CheckpointNotFoundError, match=r"no saved_model\.pb"):
        TensorflowCheckpoint.from_saved_model(str(tmp_path))
    with pytest.raises(CheckpointNotFoundError, match="not saved as a TensorflowCheckpoint"):
        TensorflowCheckpoint(str(tmp_path)).get_model()
