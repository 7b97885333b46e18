"""RaySGD's trainer: which trainer it stands for, where it keeps its runs, and what it refuses. Nothing is started."""

from __future__ import annotations

import cloudpickle
import pytest

import trainlib
from trainlib import _rooms, sgd
from trainlib.execution import BackendConfig
from trainlib.sgd import Trainer
from trainlib.tensorflow import TensorflowConfig
from trainlib.torch import TorchConfig, TorchTrainer
from trainlib.tune._portable import packed, unpacked
from trainlib.tune._trainable import Trainable


def nothing() -> None:
    pass


def trainer_for(backend):
    return Trainer(backend, num_workers=2).to_tune_trainable(nothing).trainer


def test_ray_train_has_the_same_trainer():
    assert trainlib.Trainer is sgd.Trainer


def test_settings_choose_the_trainer_of_their_framework():
    gloo = trainer_for(TorchConfig(backend="gloo"))
    assert type(gloo) is TorchTrainer
    assert gloo.backend_config.backend == "gloo"
    assert type(trainer_for("torch")) is TorchTrainer
    assert type(trainer_for(TensorflowConfig())).__name__ == "TensorflowTrainer"
    assert type(trainer_for(BackendConfig())).__name__ == "DataParallelTrainer"


def test_retries_are_for_lost_workers():
    assert trainer_for("torch").run_config.failure_config.max_failures == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"backend": "pytorch"},
            ValueError,
            "backend is 'pytorch': pass 'torch', 'tensorflow', 'horovod', or settings",
        ),
        ({"backend": 5}, TypeError, "backend is a int: pass 'torch'"),
        ({"backend": "torch", "num_workers": 0}, ValueError, "num_workers is 0: pass a whole number that is 1 or more"),
        ({"backend": "torch", "num_workers": "2"}, ValueError, "num_workers is '2': pass a whole number"),
        (
            {"backend": "torch", "max_retries": -2},
            ValueError,
            "max_retries is -2: pass a whole number that is -1 or more",
        ),
        ({"backend": "torch", "resources_per_worker": {"GPU": 1}}, ValueError, "set use_gpu=True as well"),
    ],
)
def test_a_trainer_that_makes_no_sense(arguments, error, message):
    with pytest.raises(error, match=message):
        Trainer(**arguments)


def test_a_framework_that_is_not_installed_is_told_at_once(monkeypatch):
    monkeypatch.setattr(_rooms, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'trainlib\[tensorflow\]'"):
        Trainer("tensorflow")


def test_a_relative_log_directory_is_below_the_others(home):
    assert Trainer("torch").logdir == str(home / "runs")
    assert Trainer("torch", logdir="mine").logdir == str(home / "runs" / "mine")
    assert Trainer("torch", logdir="/elsewhere").logdir == "/elsewhere"
    assert Trainer("torch", logdir="s3://bucket/mine").logdir == "s3://bucket/mine"


def test_a_trainable_is_tuned_like_a_function_in_another_process_too():
    trainable = Trainer("torch", num_workers=2).to_tune_trainable(nothing)
    kept = cloudpickle.loads(cloudpickle.dumps(packed(trainable, {})))
    for each in (trainable, unpacked(kept, {})["trainable"]):
        of_sweep = Trainable(each)
        assert of_sweep.is_function
        assert of_sweep.name == "nothing"
        assert of_sweep.trainers[0].scaling_config.num_workers == 2
