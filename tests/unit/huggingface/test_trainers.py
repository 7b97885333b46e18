"""What the trainers take, and what they refuse before anything starts."""

from __future__ import annotations

import cloudpickle
import pandas as pd
import pytest

from trainlib import CheckpointConfig, RunConfig, ScalingConfig, trainable, tune
from trainlib import _rooms as rooms
from trainlib.errors import InvalidArgumentError
from trainlib.flows import TrainSpec
from trainlib.huggingface import AccelerateTrainer, HuggingFaceTrainer, TransformersTrainer
from trainlib.huggingface._launch import _environment, tell_accelerate
from trainlib.torch import TorchConfig
from trainlib.tune import Tuner

ROWS = pd.DataFrame({"input_ids": [[1, 2], [3, 4]]})


@trainable
def make_trainer(train_dataset, eval_dataset=None, **config):
    pass


@trainable
def with_rate(train_dataset, eval_dataset, *, lr):
    pass


def test_its_arguments_survive_copies_other_processes_and_sweeps():
    group = TorchConfig(timeout_s=60)
    trainer = HuggingFaceTrainer(make_trainer, trainer_init_config={"lr": 0.1, "epochs": 2}, torch_config=group)
    assert type(trainer) is TransformersTrainer
    assert trainer.backend_config.timeout_s == 60
    copied = trainer.copy_with(trainer_init_config={"lr": 0.2})
    assert copied.arguments()["trainer_init_config"] == {"lr": 0.2}
    assert copied.arguments()["trainer_init_per_worker"] is make_trainer
    saved = cloudpickle.loads(trainer.settings.dumps()).unpacked()
    assert TransformersTrainer.from_settings(saved).arguments().keys() == trainer.arguments().keys()
    plan = Tuner(trainer, param_space={"trainer_init_config": {"lr": tune.grid_search([0.3, 0.4])}}).plan
    trial = plan.trainable.trainer({"trainer_init_config": {"lr": 0.4}}, plan.run_fields)
    assert trial.arguments()["trainer_init_config"] == {"lr": 0.4, "epochs": 2}
    assert trial.backend_config.timeout_s == 60


def test_a_form_describes_it():
    typed = {
        "kind": "huggingface",
        "trainer_init_per_worker": f"{__name__}:make_trainer",
        "trainer_init_config": {"lr": 0.1},
    }
    trainer = TrainSpec(trainer=typed).build()
    assert trainer.arguments()["trainer_init_per_worker"] is make_trainer
    assert TrainSpec.of(trainer).trainer.model_dump() == typed
    with pytest.raises(ValueError, match="trainer_init_per_worker is 'nonsense': write it as module:function"):
        TrainSpec(trainer={"kind": "huggingface", "trainer_init_per_worker": "nonsense"})
    with pytest.raises(ValueError, match="which is not marked as a function that forms may name"):
        TrainSpec(trainer={"kind": "huggingface", "trainer_init_per_worker": "os.path:join"}).build()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"trainer_init_per_worker": None},
            TypeError,
            "trainer_init_per_worker is .*None.*: pass a function that builds",
        ),
        ({"trainer_init_per_worker": lambda: None}, TypeError, "it is called with the train_dataset, the eval_dataset"),
        (
            {"trainer_init_per_worker": with_rate, "trainer_init_config": {"lr": 0.1, "epochs": 2}},
            TypeError,
            r"trainer_init_config does not fit with_rate\(train_dataset, eval_dataset, \*, lr\): .*unexpected .*'epochs'",
        ),
        (
            {"trainer_init_config": {"eval_dataset": None}},
            TypeError,
            "trainer_init_config does not fit make_trainer.*: multiple values for argument 'eval_dataset'",
        ),
        ({"trainer_init_config": ["lr"]}, TypeError, "trainer_init_config is a list: pass a dict"),
        ({"datasets": {"evaluation": ROWS}}, ValueError, "datasets has no 'train', only 'evaluation'"),
        ({"datasets": {"train": ROWS, "eval": ROWS}}, ValueError, "datasets has 'eval', which would be ignored"),
        (
            {"run_config": RunConfig(checkpoint_config=CheckpointConfig(checkpoint_frequency=2))},
            ValueError,
            "a transformers.Trainer does that itself: set save_strategy",
        ),
        ({"torch_config": {"timeout_s": 1}}, TypeError, "torch_config is a dict: pass a TransformersConfig"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_it_cannot_use_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        TransformersTrainer(**{"trainer_init_per_worker": make_trainer, **arguments})


def test_an_argument_of_the_function_that_is_missing_is_named_before_anything_starts():
    trainer = TransformersTrainer(with_rate)
    with pytest.raises(TypeError, match=r"does not fit with_rate\(.*\): missing a required .*argument: 'lr'"):
        trainer.inspect()
    plan = Tuner(trainer, param_space={"trainer_init_config": {"lr": tune.grid_search([0.3, 0.4])}}).plan
    trial = plan.trainable.trainer({"trainer_init_config": {"lr": 0.4}}, plan.run_fields)
    trial.inspect()


@pytest.mark.parametrize(
    ("function", "config"),
    [("make_trainer", {"target": "y", "lr": 0.1}), ("with_rate", {"lr": 0.1})],
)
def test_a_form_passes_the_target_to_functions_that_take_it(function, config):
    typed = {
        "kind": "huggingface",
        "trainer_init_per_worker": f"{__name__}:{function}",
        "trainer_init_config": {"lr": 0.1},
    }
    form = TrainSpec(trainer=typed).trainer.with_target("y")
    assert form.trainer_init_config == config


@pytest.mark.parametrize(
    ("trainer", "package"), [(TransformersTrainer, "transformers"), (AccelerateTrainer, "accelerate")]
)
def test_a_missing_package_is_named_with_its_extra(trainer, package, monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda name: None if name == package else "found")
    with pytest.raises(
        ImportError, match=rf"{trainer.__name__} needs {package}: pip install 'trainlib\[huggingface\]'"
    ):
        trainer(make_trainer)


# -- Accelerate ----------------------------------------------------------------------------------------------


def test_accelerate_takes_a_file_a_dict_or_nothing(tmp_path):
    (tmp_path / "a.yaml").write_text("distributed_type: 'NO'\nmixed_precision: bf16\n")
    (tmp_path / "a.json").write_text('{"distributed_type": "NO", "mixed_precision": "bf16"}')
    told = {"distributed_type": "NO", "mixed_precision": "bf16"}
    for given in (tmp_path / "a.yaml", str(tmp_path / "a.json"), told):
        assert AccelerateTrainer(print, accelerate_config=given).backend_config.config == told
    assert AccelerateTrainer(print).backend_config.config == {}
    trainer = AccelerateTrainer(print, accelerate_config=told, torch_config=TorchConfig(timeout_s=60))
    for copied in (
        trainer.copy_with(torch_config=TorchConfig(timeout_s=60)),
        trainer.copy_with(scaling_config=ScalingConfig()),
    ):
        assert (copied.backend_config.timeout_s, copied.backend_config.config) == (60, told)
    assert trainer.copy_with(accelerate_config={}).backend_config.config == {}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (7, TypeError, "accelerate_config is an? .*7?.*: pass a dict, or the path of a file"),
        (
            "missing.yaml",
            ValueError,
            "'missing.yaml': there is no such file. `accelerate config --config_file missing.yaml`",
        ),
        (
            {"distributed_type": "DEEPSPEED"},
            ImportError,
            "needs the package deepspeed on every node, and a CUDA toolkit",
        ),
        ({"distributed_type": "FSDP"}, ValueError, r"On CPUs, only the second version of FSDP works: add fsdp_config"),
        ({"distributed_type": "MULTI_GPU"}, ValueError, r"the workers have no GPUs. Use ScalingConfig\(use_gpu=True\)"),
        ({"distributed_type": "MEGATRON_LM"}, ValueError, "cannot train with Megatron-LM"),
        (
            {"mixed_precison": "bf16"},
            ValueError,
            "accelerate_config has 'mixed_precison', which Accelerate does not know. Did you mean 'mixed_precision'",
        ),
        ({"compute_environment": "AMAZON_SAGEMAKER"}, ValueError, "The workers are those of Ray: leave it out"),
        (
            {"distributed_type": "FSPD"},
            ValueError,
            "has distributed_type: FSPD, which Accelerate does not know. Did you mean 'FSDP'.*It knows NO, MULTI_CPU",
        ),
        ({"distributed_type": "multi_cpu"}, ValueError, "Did you mean 'MULTI_CPU'"),
        ({"mixed_precision": "int8"}, ValueError, "has mixed_precision: int8, .* It knows no, fp8, fp16, bf16"),
        ({"dynamo_backend": "inductr"}, ValueError, "Did you mean 'INDUCTOR'"),
        (
            {"fsdp_config": {"fsdp_auto_wrap_policy": "NOPE"}},
            ValueError,
            "fsdp_auto_wrap_policy: NOPE, .*SIZE_BASED_WRAP",
        ),
        ({"fsdp_config": {"state_dict_type": "SHARDED_STATE"}}, ValueError, "Did you mean 'SHARDED_STATE_DICT'"),
        (
            {"dynamo_config": {"dynamo_backend": "INDUCTR"}},
            ValueError,
            "dynamo_config: dynamo_backend: INDUCTR, .*'INDUCTOR'",
        ),
        ({"fsdp_config": {"sharding_strategy": "9"}}, ValueError, "sharding_strategy: 9, .*FULL_SHARD"),
        ({"mixed_precision": True}, ValueError, "has mixed_precision: True, .* It knows no,"),
        ({"fsdp_config": {"fsdp_version": 3}}, ValueError, "fsdp_config: fsdp_version: 3, .*It knows 1, 2"),
        ({"fsdp_config": {"fsdp_ofload_params": True}}, ValueError, "Did you mean 'fsdp_offload_params'"),
        ({"fsdp_config": "full_shard"}, TypeError, r"fsdp_config: a str\. Expected a mapping of settings"),
    ],
    ids=str,
)
def test_what_accelerate_cannot_do_here_is_said_before_anything_starts(given, error, message):
    with pytest.raises(error, match=message):
        AccelerateTrainer(print, accelerate_config=given)


def test_a_no_without_quotation_marks_is_no_boolean(tmp_path):
    """YAML reads it as False, which Accelerate takes for neither."""
    file = tmp_path / "a.yaml"
    file.write_text("distributed_type: NO\nmixed_precision: no\ndebug: no\ndynamo_config: {dynamo_backend: NO}\n")
    told = {
        "distributed_type": "NO",
        "mixed_precision": "no",
        "debug": False,
        "dynamo_config": {"dynamo_backend": "NO"},
    }
    trainer = AccelerateTrainer(print, accelerate_config=file)
    assert trainer.backend_config.config == told
    assert _environment(told)["ACCELERATE_MIXED_PRECISION"] == "no"


@pytest.mark.parametrize(
    "given",
    [
        {"mixed_precision": "BF16", "distributed_type": None, "fsdp_config": {}},
        {"fsdp_config": {"fsdp_version": "2", "fsdp_auto_wrap_policy": "no_wrap", "offload_params": False}},
        {"fsdp_config": {"fsdp_sharding_strategy": 1, "fsdp_activation_checkpointing_offload": False}},
    ],
    ids=str,
)
def test_what_accelerate_reads_in_another_spelling_is_taken(given):
    AccelerateTrainer(print, accelerate_config=given)


def test_a_worker_whose_accelerate_is_another_one_also_names_what_it_does_not_know():
    with pytest.raises(
        InvalidArgumentError, match=r"cannot use accelerate_config: It had unknown keys .*mixed_precison"
    ):
        tell_accelerate({"mixed_precison": "bf16"})


def test_all_that_accelerate_itself_writes_is_known():
    from accelerate.commands.config.config_args import ClusterConfig

    given = dict.fromkeys(ClusterConfig.__dataclass_fields__)
    of_old_versions = {"fp16": False, "dynamo_backend": "NO"}
    AccelerateTrainer(
        print,
        accelerate_config={
            **given,
            **of_old_versions,
            "distributed_type": "NO",
            "compute_environment": "LOCAL_MACHINE",
        },
    )


def test_a_file_that_is_no_settings_is_named(tmp_path):
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ValueError, match=r"list.yaml contains a list. Expected a mapping of settings"):
        AccelerateTrainer(print, accelerate_config=tmp_path / "list.yaml")
    with pytest.raises(ValueError, match=r"broken.json can be read neither as YAML nor as JSON"):
        AccelerateTrainer(print, accelerate_config=tmp_path / "broken.json")
