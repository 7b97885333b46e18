"""Wrong settings are an error when they are created."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainlib import Checkpoint, CheckpointConfig, DataParallelTrainer, FailureConfig, RunConfig, ScalingConfig
from trainlib.callbacks import Callback
from trainlib.torch import TorchConfig, TorchTrainer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScalingConfig(num_workers="two"), "num_workers"),
        (lambda: ScalingConfig(num_workers=0), "greater than or equal to 1"),
        (lambda: ScalingConfig(num_workers=2.5), "num_workers"),
        (lambda: ScalingConfig(workers=2), "workers"),
        (lambda: ScalingConfig(use_gpu="yes"), "use_gpu"),
        (lambda: ScalingConfig(resources_per_worker={"CPU": -1}), "cannot be negative"),
        (lambda: ScalingConfig(resources_per_worker={"GPU": 1}), "set use_gpu=True as well"),
        (lambda: ScalingConfig(use_gpu=True, resources_per_worker={"GPU": 0}), "drop one of them"),
        (lambda: ScalingConfig(use_gpu=True, resources_per_worker={"GPU": 1.5}), "above 1 it has to be a whole number"),
        (lambda: ScalingConfig(resources_per_worker={"CPU": 0}), r"resources_per_worker reserves nothing.*'CPU': 0.5"),
        (lambda: ScalingConfig(resources_per_worker={"CPU": 0, "disk": 0}), "resources_per_worker reserves nothing"),
        (lambda: ScalingConfig(placement_strategy="CLOSE"), "PACK"),
        (lambda: CheckpointConfig(num_to_keep=-1), "num_to_keep"),
        (lambda: CheckpointConfig(checkpoint_score_order="best"), "'max' or 'min'"),
        (lambda: FailureConfig(max_failures=-2), "max_failures"),
        (lambda: FailureConfig(max_failures="3"), "max_failures"),
        (lambda: RunConfig(max_time_s=0), "max_time_s"),
        (lambda: RunConfig(max_time_s=float("inf")), "max_time_s"),
        (lambda: RunConfig(stop_on_nan="yes"), "stop_on_nan"),
        (lambda: RunConfig(divergence={"factor": 1}), r"divergence.factor"),
        (lambda: RunConfig(divergence={"patience": 0}), r"divergence.patience"),
        (lambda: RunConfig(divergence={"factor": None}), "neither factor nor bound is set"),
        (lambda: RunConfig(callbacks=["print"]), "'print' is not a callback"),
        (lambda: RunConfig(stop={"loss": "low"}), "the bound of 'loss' is 'low': pass a number"),
        (lambda: RunConfig(stop=3), "stop is a int: pass a dict"),
        (lambda: TorchConfig(backend="smoke-signals"), "backend"),
        (lambda: TorchConfig(timeout_s=0), "timeout_s"),
    ],
)
def test_a_wrong_value_is_named(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_a_limit_for_each_node_says_what_to_use_instead():
    """As in Ray's guide for XGBoost."""
    with pytest.raises(
        ValueError, match=r"^ScalingConfig has no _max_cpu_fraction_per_node: .* fewer workers, or smaller"
    ):
        DataParallelTrainer(print, scaling_config={"num_workers": 2, "_max_cpu_fraction_per_node": 0.8})
    assert ScalingConfig(num_workers=2, _max_cpu_fraction_per_node=None).model_fields_set == {"num_workers"}


def test_a_field_is_checked_when_it_is_assigned_too():
    scaling = ScalingConfig(num_workers=2)
    with pytest.raises(ValidationError, match="num_workers"):
        scaling.num_workers = "three"


def test_resources_have_defaults():
    assert ScalingConfig(num_workers=2).worker_resources == {"CPU": 1.0}
    assert ScalingConfig(num_workers=2, use_gpu=True).worker_resources == {"CPU": 1.0, "GPU": 1.0}
    assert ScalingConfig(num_workers=2, resources_per_worker={"CPU": 3}).total_resources == {"CPU": 6.0}
    assert ScalingConfig(num_workers=1, trainer_resources={"CPU": 2}).bundles == [{"CPU": 1.0}, {"CPU": 2.0}]


@pytest.mark.parametrize("nothing", [None, {}, {"CPU": 0}, {"CPU": 0, "GPU": 0.0}])
def test_a_trainer_that_needs_nothing_asks_for_no_bundle(nothing):
    scaling = ScalingConfig(num_workers=2, trainer_resources=nothing)
    assert scaling.bundles == [{"CPU": 1.0}, {"CPU": 1.0}], "Ray refuses a bundle of zeros"
    assert scaling.total_resources == {"CPU": 2.0}


def test_what_is_zero_is_not_asked_for():
    scaling = ScalingConfig(use_gpu=True, resources_per_worker={"CPU": 0}, trainer_resources={"CPU": 0, "disk": 1})
    assert scaling.bundles == [{"GPU": 1.0}, {"disk": 1.0}]
    assert scaling.total_resources == {"GPU": 1.0, "disk": 1.0}


def test_run_config_takes_none_for_its_parts():
    config = RunConfig(checkpoint_config=None, failure_config=None)
    assert config.checkpoint_config == CheckpointConfig()
    assert config.failure_config == FailureConfig()


def test_callbacks_keep_their_identity():
    callback = Callback()
    assert RunConfig(callbacks=[callback]).callbacks[0] is callback


def two_parameters(config, model):
    pass


def test_a_training_function_with_two_parameters():
    with pytest.raises(ValueError, match=r"two_parameters\(config, model\) takes 2 parameters.*train_loop_config"):
        TorchTrainer(two_parameters)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TorchTrainer("train"), "train_loop_per_worker is a str: pass a function"),
        (lambda: TorchTrainer(print, train_loop_config=[1]), "train_loop_config is a list: pass a dict"),
        (lambda: TorchTrainer(lambda: None, scaling_config=2), "scaling_config is a int: pass a ScalingConfig"),
        (lambda: TorchTrainer(lambda: None, run_config="x"), "run_config is a str: pass a RunConfig"),
        (lambda: TorchTrainer(lambda: None, resume_from_checkpoint=3), "resume_from_checkpoint is a int"),
        (lambda: TorchTrainer(lambda: None, resume_from_checkpoint=""), "resume_from_checkpoint is ''"),
        (lambda: DataParallelTrainer(lambda: None, backend_config="torch"), "backend_config is a str"),
    ],
)
def test_a_trainer_names_an_argument_of_the_wrong_type(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_function_may_have_further_parameters_with_defaults():
    received = {}

    def train_func(config, verbose=False):
        received.update(config)

    TorchTrainer(train_func, train_loop_config={"lr": 1}).bound_function()()
    assert received == {"lr": 1}


def test_both_spellings_of_the_torch_config():
    config = TorchConfig(backend="gloo")
    assert TorchTrainer(lambda: None, torch_backend=config).backend_config is config
    assert TorchTrainer(lambda: None, torch_config=config).backend_config is config
    with pytest.raises(ValueError, match="the same argument"):
        TorchTrainer(lambda: None, torch_backend=config, torch_config=config)


def test_a_checkpoint_is_made_of_one_thing():
    with pytest.raises(ValueError, match="pass one of them"):
        Checkpoint()
    with pytest.raises(TypeError, match="takes a dict, got list"):
        Checkpoint.from_dict([1])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 300, "has 300 characters: shorten it to"),
        ("a\0b", "has characters that cannot be printed"),
        ("a\nb", "has characters that cannot be printed"),
        ("..", "is not a name"),
        (" ", "is not a name"),
    ],
)
@pytest.mark.parametrize("field", ["name", "experiment_name"])
def test_names_that_mlflow_or_a_disk_would_stumble_over(field, name, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**{field: name})
