"""RaySGD's trainer: which trainer it stands for, where it keeps its runs, and what it refuses. Nothing is started."""

from __future__ import annotations

import re
from datetime import datetime

import cloudpickle
import pytest

import trainlib
from trainlib import _rooms, sgd
from trainlib._execution.causes import Cause
from trainlib._execution.origin import Origin
from trainlib._training.retry_policy import Decision, Failure, decide
from trainlib.execution import BackendConfig
from trainlib.sgd import Trainer
from trainlib.sgd._log_folders import LogFolders
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
    config = trainer_for("torch").run_config.failure_config
    assert config.max_failures == 3
    lost, raised = Failure(Cause.WORKER), Failure(Cause.USER, Origin("builtins.ValueError", "train.py", 7))
    assert decide(lost, [lost, lost], config) is Decision.RETRY
    assert decide(raised, [], config) is Decision.GIVE_UP


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"backend": "pytorch"},
            ValueError,
            "backend is 'pytorch': pass 'torch', 'tensorflow', 'horovod', 'xgboost', 'lightgbm', 'accelerate', or settings",
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


def test_each_trainer_has_a_folder_of_its_own(home):
    first, second = Trainer("torch"), Trainer("torch")
    assert first.logdir != second.logdir
    for logdir in (first.logdir, second.logdir):
        assert logdir.is_dir()
        assert logdir.parent == home / "runs"
        assert re.fullmatch(r"sgd_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?", logdir.name)
    assert first.latest_run_dir is first.latest_checkpoint_dir is first.latest_checkpoint_path is None
    assert first.latest_checkpoint is first.latest_result is None


def test_a_relative_log_directory_is_below_the_others(home, tmp_path):
    assert Trainer("torch", logdir="mine").logdir == home / "runs" / "mine"
    assert Trainer("torch", logdir=tmp_path / "elsewhere").logdir == tmp_path / "elsewhere"
    assert Trainer("torch", logdir="s3://bucket/mine").logdir.parent == home / "runs", "logs are on this machine"


def test_runs_are_numbered_also_where_an_earlier_trainer_has_left_some(tmp_path):
    folders = LogFolders.of(tmp_path, datetime(2026, 1, 31))
    assert folders.next_run() == tmp_path / "run_001"
    (tmp_path / "run_007").mkdir()
    again = LogFolders.of(tmp_path, datetime(2026, 2, 1))
    assert again.log_folder(again.next_run()) == "run_008"


def test_a_folder_is_told_below_that_of_all_runs(home):
    folders = LogFolders.of(None, datetime(2020, 1, 31, 9, 30))
    assert folders.log_folder(folders.next_run()) == "sgd_2020-01-31_09-30-00/run_001"
    assert folders.storage_path is None, "checkpoints are where those of all trainings are"


@pytest.mark.parametrize("method", ["run", "run_iterator"])
def test_a_run_without_start_says_what_to_do(method):
    trainer = Trainer("torch")
    with pytest.raises(RuntimeError, match=rf"call start\(\) before {method}\(\), and shutdown\(\) after"):
        getattr(trainer, method)(nothing)


def test_a_trainable_is_tuned_like_a_function_in_another_process_too():
    trainable = Trainer("torch", num_workers=2).to_tune_trainable(nothing)
    kept = cloudpickle.loads(cloudpickle.dumps(packed(trainable, {})))
    for each in (trainable, unpacked(kept, {})["trainable"]):
        of_sweep = Trainable(each)
        assert of_sweep.is_function
        assert of_sweep.name == "nothing"
        assert of_sweep.trainers[0].scaling_config.num_workers == 2
