"""Checkpoints of Keras 2 and Keras 3 models."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow import pyfunc

from tests.saved_checkpoints import saved as saved_in
from trainlib._serving.files import put_model_files
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


def test_a_preprocessor_goes_with_a_model(tmp_path):
    import pickle

    import tf_keras
    from ray.data.preprocessors import MinMaxScaler

    scaler = MinMaxScaler(["x"])
    scaler.stats_ = {"min(x)": 1.0, "max(x)": 3.0}
    model = model_of(tf_keras)
    model.save(str(tmp_path / "model.h5"))
    model.save(str(tmp_path / "saved"), save_format="tf")
    for made in (
        TensorflowCheckpoint.from_model(model, preprocessor=scaler),
        TensorflowCheckpoint.from_h5(tmp_path / "model.h5", preprocessor=scaler),
        TensorflowCheckpoint.from_saved_model(tmp_path / "saved", preprocessor=scaler),
    ):
        sent = pickle.loads(pickle.dumps(made))
        del made  # and its temporary files
        assert isinstance(sent, TensorflowCheckpoint)
        preprocessor = sent.get_preprocessor()
        assert preprocessor is not None
        assert preprocessor.stats_ == scaler.stats_
        np.testing.assert_array_equal(sent.get_model().get_weights()[0], model.get_weights()[0])


def test_weights_are_loaded_into_what_a_definition_makes(keras):
    model = model_of(keras)

    def build():
        return keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])

    saved = TensorflowCheckpoint.from_model(model)
    of_dict = TensorflowCheckpoint.from_dict({"epoch": 3, "model_weights": model.get_weights()})
    for loaded in (saved.get_model(build), saved.get_model(build()), of_dict.get_model(model_definition=build)):
        np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])
    with pytest.raises(ValueError, match=r"get_model\(build_model\)"):
        of_dict.get_model()
    with pytest.raises(TypeError, match="model_definition is a int"):
        saved.get_model(3)


def test_a_saved_model_folder_is_read_as_it_is(tmp_path):
    """Whoever wrote it: Keras 2, which saves its layers too, or Keras 3 and TensorFlow, whose models predict."""
    import keras
    import tensorflow as tf
    import tf_keras

    old, new = model_of(tf_keras), model_of(keras)
    old.save(str(tmp_path / "old"), save_format="tf")
    new.export(str(tmp_path / "new"), verbose=False)
    tf.saved_model.save(old, str(tmp_path / "plain"))
    rows = np.ones((2, 4), "float32")
    for name, model in (("old", old), ("new", new)):
        loaded = TensorflowCheckpoint.from_directory(tmp_path / name).get_model()
        np.testing.assert_allclose(loaded(rows), model(rows))
    (predicted,) = TensorflowCheckpoint.from_directory(tmp_path / "plain").get_model()(rows).values()
    np.testing.assert_allclose(predicted, old(rows))
    other = model_of(tf_keras)
    assert TensorflowCheckpoint.from_directory(tmp_path / "old").get_model(other) is other
    np.testing.assert_array_equal(other.get_weights()[0], old.get_weights()[0])


def test_a_folder_with_one_model_file_is_read(tmp_path):
    import tf_keras

    model = model_of(tf_keras)
    model.save(str(tmp_path / "my_model.h5"))
    loaded = TensorflowCheckpoint.from_directory(tmp_path).get_model()
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_a_format_that_can_contain_code_is_loaded_only_if_it_is_trusted(tmp_path, monkeypatch):
    import os

    import tf_keras

    from trainlib.errors import UntrustedCheckpointError

    model = model_of(tf_keras)
    model.save(str(tmp_path / "model.h5"))
    model.save(str(tmp_path / "saved"), save_format="tf")
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    for folder in (tmp_path, tmp_path / "saved"):
        with pytest.raises(UntrustedCheckpointError):
            TensorflowCheckpoint.from_directory(folder).get_model()


def test_a_registered_model_predicts_by_itself_and_weights_say_why_they_cannot(keras, tmp_path):
    model = model_of(keras)
    each = saved_in(TensorflowCheckpoint.from_model(model), str(tmp_path))
    assert put_model_files(each, "run-1") is None
    rows = pd.DataFrame(np.eye(4), columns=["a", "b", "c", "d"])
    predicted = pyfunc.load_model(str(Path(each.location).parent)).predict(rows)
    np.testing.assert_allclose(predicted, model.predict(np.eye(4), verbose=0), rtol=1e-6)
    weights = saved_in(TensorflowCheckpoint.from_dict({"model": model.get_weights()}), str(tmp_path), "m-2")
    assert "it has no whole Keras model" in str(put_model_files(weights, "run-1"))
