"""The names that the guides import, and those that their bodies go through: only import lines change."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import cloudpickle
import pytest
import ray.tune

import trainlib
from trainlib import air, train, tune
from trainlib.errors import InvalidArgumentError
from trainlib.tune._absent import INSTEAD
from trainlib.tune._trainable import ReportingFunction


def test_train_is_ray_train_of_the_guides():
    from trainlib import torch

    assert train.torch is torch
    assert train.torch.prepare_model is torch.prepare_model
    assert train.tensorflow.TensorflowTrainer.__name__ == "TensorflowTrainer"
    assert train.horovod.HorovodTrainer.__name__ == "HorovodTrainer"
    assert train.huggingface.HuggingFaceTrainer is train.huggingface.TransformersTrainer
    from trainlib.train.huggingface.accelerate import AccelerateTrainer

    assert AccelerateTrainer is train.huggingface.AccelerateTrainer
    assert train.report is trainlib.report
    assert train.data_parallel_trainer.DataParallelTrainer is trainlib.DataParallelTrainer
    assert train.base_trainer.BaseTrainer is trainlib.BaseTrainer
    assert train.base_trainer.TrainingFailedError is trainlib.TrainingFailedError
    assert train.backend.BackendConfig is train.BackendConfig


def test_air_is_ray_air_of_the_guides():
    assert air.session.report is trainlib.report
    assert air.ScalingConfig is air.config.ScalingConfig is trainlib.ScalingConfig
    assert air.Checkpoint is air.checkpoint.Checkpoint is trainlib.Checkpoint
    assert air.result.Result is trainlib.Result


def test_trainlib_can_be_imported_as_ray():
    code = """
import sys
import trainlib as ray
assert "ray" not in sys.modules
assert ray.train.torch.prepare_model is ray.torch.prepare_model
assert ray.air.session.report is ray.train.report
assert ray.tune.grid_search and ray.sgd.Trainer and ray.train.data_parallel_trainer.DataParallelTrainer
assert "ray" not in sys.modules and "torch" not in sys.modules
import ray as itself
assert ray.init is itself.init and ray.data is itself.data and ray.get is itself.get
assert not ray.is_initialized()
assert {"init", "data", "train", "air", "torch"} <= set(dir(ray))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", [trainlib, train, air, tune], ids=lambda module: module.__name__)
def test_a_training_function_that_uses_such_a_module_can_be_sent_to_workers(module):
    assert pickle.loads(cloudpickle.dumps(lambda: module))() is module


def test_modules_of_train_and_air_can_be_imported_by_their_names():
    code = """
import importlib, sys
import trainlib.air.config
from trainlib.train.torch import TorchTrainer
assert "ray" not in sys.modules
same = {f"train.{name}": name for name in (
    "base_trainer", "callbacks", "data_parallel_trainer", "horovod", "lightning", "rl", "tensorflow", "torch")}
same |= {f"air.{name}": name for name in ("checkpoint", "config", "result", "session")}
for theirs, ours in {**same, "train.backend": "execution"}.items():
    module = importlib.import_module(f"trainlib.{theirs}")
    assert module is importlib.import_module(f"trainlib.{ours}"), theirs
    assert module.__name__ == module.__spec__.name == f"trainlib.{ours}", theirs
assert trainlib.train.torch.TorchTrainer is TorchTrainer
assert trainlib.air.config is trainlib.config
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="module 'trainlib' has no attribute 'trian'"):
        _ = trainlib.trian
    with pytest.raises(AttributeError, match=r"module 'trainlib.train' has no attribute 'torhc'"):
        _ = train.torhc


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("trainlib.data_parallel_trainer", ["DataParallelTrainer"]),
        ("trainlib.base_trainer", ["BaseTrainer", "TrainingFailedError"]),
        *(
            (f"trainlib.{folder}.{module}", names)
            for folder in ("huggingface", "train.huggingface")
            for module, names in {
                "accelerate": ["AccelerateTrainer"],
                "transformers": [
                    "RayTrainReportCallback",
                    "TransformersCheckpoint",
                    "TransformersTrainer",
                    "prepare_trainer",
                ],
            }.items()
        ),
        ("trainlib.tune.tuner", ["Tuner", "TuneConfig"]),
        ("trainlib.tune.logger", ["LoggerCallback", "JsonLoggerCallback", "TBXLoggerCallback"]),
        ("trainlib.tune", ["Callback", "report", "with_parameters", "with_resources", "Stopper", "get_context"]),
        ("trainlib.tune", ["RunConfig", "CheckpointConfig", "FailureConfig", "Result", "Checkpoint", "TuneError"]),
    ],
)
def test_a_module_has_the_names_that_the_guides_import_from_it(module, names):
    assert set(names) <= set(importlib.import_module(module).__all__)


def test_all_trainers_are_base_trainers():
    trainers = [train.torch.TorchTrainer, train.tensorflow.TensorflowTrainer, train.horovod.HorovodTrainer]
    assert all(issubclass(trainer, train.base_trainer.BaseTrainer) for trainer in trainers)
    assert all(issubclass(trainer, train.data_parallel_trainer.DataParallelTrainer) for trainer in trainers)


def scaled(config, data, shift=0):
    return {"total": config["factor"] * sum(data) + shift}


def test_with_parameters_ties_arguments_to_a_function():
    bound = tune.with_parameters(scaled, data=[1, 2])
    assert bound({"factor": 10}) == {"total": 30}
    trainable = tune.Tuner(bound, param_space={"factor": tune.grid_search([1, 2])})
    assert trainable.name == "scaled"


@pytest.mark.parametrize(
    "trainable",
    [
        tune.with_resources(tune.with_parameters(scaled, data=[1]), {"cpu": 2, "gpu": 0.5}),
        tune.with_parameters(tune.with_resources(scaled, {"cpu": 2, "gpu": 0.5}), data=[1]),
        tune.with_resources(
            tune.with_parameters(scaled, data=[1]), tune.PlacementGroupFactory([{"CPU": 2, "GPU": 0.5}])
        ),
    ],
    ids=["parameters first", "resources first", "placement group"],
)
def test_with_resources_is_what_each_trial_reserves(trainable):
    trainer = tune.Tuner(trainable, param_space={"factor": 1}).trainer
    assert trainer.scaling_config.worker_resources == {"CPU": 2.0, "GPU": 0.5}
    assert isinstance(trainer.train_loop_per_worker, ReportingFunction)
    assert trainer.train_loop_per_worker.__wrapped__({"factor": 3}) == {"total": 3}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tune.with_parameters(scaled, dta=[1]), "scaled got an unexpected keyword argument 'dta'"),
        (lambda: tune.with_parameters(3, data=[1]), "takes a training function, but got 3"),
        (lambda: tune.with_parameters(trainlib.DataParallelTrainer(print), x=1), "a trainer has train_loop_config"),
        (lambda: tune.with_resources(scaled, lambda config: {"cpu": 1}), "resources is a function. Pass a dict"),
        (lambda: tune.with_resources(scaled, {"cpu": -1}), "cannot be negative"),
        (
            lambda: tune.with_resources(scaled, tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 2}])),
            r"has 2 bundles, for workers that the function starts by itself\. Pass one bundle, or use a trainer",
        ),
    ],
)
def test_what_cannot_be_tied_is_named(make, message):
    with pytest.raises(ValueError, match=message) as raised:
        make()
    assert isinstance(raised.value, InvalidArgumentError) or "resources_per_worker" in str(raised.value)


def test_every_name_of_ray_tune_is_here_or_says_what_to_use_instead():
    for name in ray.tune.__all__:
        if name not in INSTEAD:
            assert getattr(tune, name), name
            continue
        with pytest.raises(ImportError, match=f"trainlib.tune has no {name}: "):
            getattr(tune, name)
    with pytest.raises(ImportError, match=r"has no CLIReporter: .* RunConfig\(verbose=0\)"):
        from trainlib.tune import CLIReporter  # noqa: F401
    with pytest.raises(AttributeError, match=r"module 'trainlib.tune' has no attribute 'Tunner'"):
        _ = tune.Tunner
