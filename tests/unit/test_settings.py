"""A trainer is described by one frozen value, from which another trainer like it can be made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import cloudpickle
import pytest

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig
from trainlib._settings import TrainerSettings
from trainlib.callbacks import Callback
from trainlib.horovod import HorovodConfig, HorovodTrainer
from trainlib.torch import TorchConfig, TorchTrainer


def train_func(config) -> None:
    pass


def test_settings_do_not_change():
    trainer = TorchTrainer(train_func)
    with pytest.raises(FrozenInstanceError):
        trainer.settings.run_config = RunConfig(name="other")
    with pytest.raises(AttributeError):
        trainer.run_config = RunConfig(name="other")


def test_a_copy_has_what_was_changed_and_the_rest():
    trainer = TorchTrainer(train_func, train_loop_config={"lr": 0.1}, torch_config=TorchConfig(backend="gloo"))
    copy = trainer.copy_with(scaling_config=ScalingConfig(num_workers=3))
    assert type(copy) is TorchTrainer
    assert (copy.scaling_config.num_workers, trainer.scaling_config.num_workers) == (3, 1)
    assert (copy.train_loop_config, copy.backend_config) == ({"lr": 0.1}, trainer.backend_config)
    assert trainer.copy_with().settings == trainer.settings


def test_a_copy_takes_either_spelling_of_the_frameworks_settings():
    trainer = TorchTrainer(train_func, torch_config=TorchConfig(timeout_s=1))
    assert trainer.copy_with(torch_backend=TorchConfig(timeout_s=2)).backend_config.timeout_s == 2
    assert trainer.copy_with(torch_config=TorchConfig(timeout_s=3)).backend_config.timeout_s == 3


def test_a_copy_is_checked_as_any_trainer_is():
    with pytest.raises(TypeError, match="scaling_config is a str: pass a ScalingConfig"):
        TorchTrainer(train_func).copy_with(scaling_config="two")


def test_horovods_timeout_for_placement_wins():
    trainer = HorovodTrainer(train_func, horovod_config=HorovodConfig(placement_group_timeout_s=7))
    assert trainer.scaling_config.placement_timeout_s == 7
    assert trainer.copy_with(scaling_config={"num_workers": 2}).scaling_config.placement_timeout_s == 7


def test_another_process_can_make_the_trainer_again(tmp_path):
    (tmp_path / "points.csv").write_text("x\n1\n2\n")
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"lr": 0.1},
        torch_config=TorchConfig(backend="gloo"),
        run_config=RunConfig(name="mine", callbacks=[Callback()]),
        datasets={"train": str(tmp_path / "points.csv")},
    )
    inspected = trainer.inspect()
    assert inspected.trainer is trainer
    assert list(inspected.sources) == ["train"]
    again = TorchTrainer.from_settings(cloudpickle.loads(inspected.pickled).unpacked())
    assert again.run_config.callbacks is None, "callbacks belong to the process that has them"
    assert again.run_config.name == "mine"
    assert again.backend_config == trainer.backend_config
    assert again.datasets == trainer.datasets
    assert again.train_loop_config == {"lr": 0.1}


def test_there_has_to_be_a_function():
    with pytest.raises(TypeError, match="train_loop_per_worker is a NoneType: pass a function"):
        DataParallelTrainer(None)
    with pytest.raises(TypeError, match="train_loop_per_worker is a NoneType: pass a function"):
        TorchTrainer(train_func).copy_with(train_loop_per_worker=None)


def test_a_config_that_contains_itself_is_refused():
    config: dict = {"layers": [1, 2], "same": (shared := [1]), "again": shared}
    TrainerSettings.checked(train_loop_config=config)
    config["all"] = [config]
    with pytest.raises(ValueError, match="train_loop_config contains itself"):
        TrainerSettings.checked(train_loop_config=config)
