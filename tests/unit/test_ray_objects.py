"""Configs and checkpoints of Ray itself, handed to trainlib's trainers: a script may have kept some of its imports."""

from __future__ import annotations

import warnings
from pathlib import Path

import fsspec
import pyarrow.fs
import pytest
import ray.air
import ray.train
import ray.tune
import torch

from trainlib import DataParallelTrainer, RunConfig
from trainlib._given_checkpoint import checkpoint_to_report
from trainlib.errors import InvalidArgumentError, UntrustedCheckpointError
from trainlib.sgd import Trainer
from trainlib.torch import TorchCheckpoint, TorchConfig, TorchTrainer
from trainlib.tune import TuneConfig, Tuner


def train_func() -> None:
    pass


@pytest.mark.parametrize("rays", [ray.air, ray.train], ids=["air", "train"])
def test_rays_configs_are_taken(rays, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer = DataParallelTrainer(
            train_func,
            scaling_config=rays.ScalingConfig(
                num_workers=3, resources_per_worker={"CPU": 0.5}, placement_strategy="SPREAD"
            ),
            run_config=rays.RunConfig(
                name="digits",
                storage_path=str(tmp_path),
                failure_config=rays.FailureConfig(max_failures=4),
                checkpoint_config=rays.CheckpointConfig(
                    num_to_keep=2, checkpoint_score_attribute="loss", checkpoint_score_order="min"
                ),
            ),
        )
    assert trainer.scaling_config.num_workers == 3
    assert trainer.scaling_config.worker_resources == {"CPU": 0.5}
    assert trainer.scaling_config.placement_strategy == "SPREAD"
    config = trainer.run_config
    assert (config.name, config.storage_path) == ("digits", str(tmp_path))
    assert config.failure_config.max_failures == 4
    assert config.checkpoint_config.num_to_keep == 2
    assert config.checkpoint_config.checkpoint_score_attribute == "loss"
    assert config.checkpoint_config.checkpoint_score_order == "min"


@pytest.mark.parametrize("rays", [ray.air, ray.train], ids=["air", "train"])
def test_what_ray_fills_in_is_not_taken_for_a_wish(rays):
    trainer = DataParallelTrainer(train_func, scaling_config=rays.ScalingConfig(), run_config=rays.RunConfig())
    assert trainer.run_config == RunConfig()
    assert trainer.scaling_config.model_fields_set == set()


def test_rays_configs_stand_inside_of_ours_and_in_a_tuner():
    config = RunConfig(
        checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
        failure_config=ray.train.FailureConfig(max_failures=1),
    )
    assert config.checkpoint_config.num_to_keep == 2
    assert config.failure_config.max_failures == 1
    assert Tuner(train_func, run_config=ray.air.RunConfig(name="sweep")).run_config.name == "sweep"


def test_rays_settings_of_a_framework_are_taken():
    from ray.train.torch import TorchConfig as RaysTorchConfig

    rays = RaysTorchConfig(backend="gloo", timeout_s=60)
    taken = (
        TorchTrainer(train_func, torch_config=rays),
        DataParallelTrainer(train_func, backend_config=rays),
        Trainer(rays).to_tune_trainable(train_func).trainer,
    )
    assert [each.backend_config for each in taken] == [TorchConfig(backend="gloo", timeout_s=60)] * 3

    class Own(RaysTorchConfig):
        pass

    message = (
        r"torch_config is a Own, which extends ray\.train\.torch\.config\.TorchConfig: pass a trainlib\.torch\.Torch"
    )
    with pytest.raises(InvalidArgumentError, match=message):
        TorchTrainer(train_func, torch_config=Own())


def test_rays_tune_config_is_taken():
    given = ray.tune.TuneConfig(metric="loss", mode="min", num_samples=3, max_concurrent_trials=0)
    config = Tuner(train_func, tune_config=given).tune_config
    assert config == TuneConfig(metric="loss", mode="min", num_samples=3)
    with pytest.raises(
        ValueError, match=r"scheduler is a ray\.tune\.\S+FIFOScheduler: pass a name, or a scheduler of trainlib"
    ):
        Tuner(train_func, tune_config=ray.tune.TuneConfig(scheduler=ray.tune.schedulers.FIFOScheduler()))


def test_a_callback_of_rays_says_which_to_use():
    class Prints(ray.tune.Callback):
        pass

    with pytest.raises(ValueError, match=r"Prints is a callback of ray\.tune.* extend trainlib\.callbacks\.Callback"):
        RunConfig(callbacks=[Prints()])


def test_settings_that_ray_alone_has():
    with pytest.warns(UserWarning, match="log_to_file of Ray's RunConfig has no effect"):
        trainer = DataParallelTrainer(
            train_func,
            scaling_config=ray.train.ScalingConfig(accelerator_type="A100", use_gpu=True),
            run_config=ray.air.RunConfig(log_to_file=True, verbose=2),
        )
    assert trainer.scaling_config.worker_resources == {"CPU": 1.0, "GPU": 1.0, "accelerator_type:A100": 0.001}
    assert trainer.run_config.verbose == 2


def test_rays_data_config_is_taken():
    config = ray.train.DataConfig(datasets_to_split=["train", "extra"], enable_shard_locality=False)
    given = {"train": "a.csv", "extra": "b.csv"}
    trainer = DataParallelTrainer(train_func, datasets=given, dataset_config=config)
    assert trainer.dataset_config.datasets_to_split == ["train", "extra"]
    assert trainer.dataset_config.enable_shard_locality is False
    everything = DataParallelTrainer(train_func, datasets=given, dataset_config=ray.train.DataConfig())
    assert everything.dataset_config.splits("extra"), "as Ray's splits all datasets unless it is told otherwise"


def test_rays_checkpoint_is_taken(tmp_path):
    Path(tmp_path, "weights.txt").write_text("3")
    trainer = DataParallelTrainer(train_func, resume_from_checkpoint=ray.train.Checkpoint.from_directory(tmp_path))
    assert trainer.resume_from_checkpoint is not None
    assert trainer.resume_from_checkpoint.to_dict() == {"weights.txt": b"3"}
    reported = checkpoint_to_report(ray.train.Checkpoint(str(tmp_path)))
    assert reported is not None
    assert reported.get_internal_representation() == ("local_path", str(tmp_path))


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_rays_checkpoint_of_a_torch_model_is_one_here():
    from ray.train.torch import TorchCheckpoint as RaysTorchCheckpoint

    model = torch.nn.Linear(2, 1)
    taken = checkpoint_to_report(RaysTorchCheckpoint.from_state_dict(model.state_dict()))
    assert isinstance(taken, TorchCheckpoint)
    assert torch.equal(taken.get_model(torch.nn.Linear(2, 1)).weight, model.weight)


def test_rays_checkpoint_in_a_store_is_not_trusted():
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/rays/dict_checkpoint.pkl", b"a pickle")
    store = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(memory))
    taken = checkpoint_to_report(ray.train.Checkpoint("/rays", filesystem=store))
    assert taken is not None
    assert taken.path == "memory:///rays"
    with pytest.raises(UntrustedCheckpointError):
        taken.to_dict()


def test_what_is_no_checkpoint_is_said():
    with pytest.raises(InvalidArgumentError, match=r"checkpoint is a dict: pass a trainlib\.Checkpoint"):
        checkpoint_to_report({"epoch": 3})
