"""How the settings of a trial are applied to its trainer."""

from __future__ import annotations

import pandas as pd
import pytest

from trainlib import CheckpointConfig, DataParallelTrainer, RunConfig, ScalingConfig, tune
from trainlib.errors import CapacityError, DataError
from trainlib.torch import TorchTrainer
from trainlib.tune import PopulationBasedTraining, TuneConfig, Tuner
from trainlib.tune._capacity import require_room
from trainlib.tune._search import Search
from trainlib.xgboost import XGBoostTrainer

ROWS = pd.DataFrame({"x": [0.0, 1.0], "y": [0, 1]})


def first(config):
    pass


def second(config):
    pass


def trees(objective: str) -> XGBoostTrainer:
    return XGBoostTrainer(params={"objective": objective}, label_column="y", datasets={"train": ROWS})


def drawn(tuner: Tuner) -> list[tuple[dict, DataParallelTrainer]]:
    """The displayed params of each grid point, and its trainer."""
    plan = tuner.plan
    search = Search(plan.space, "random", mode=None, seed=0)
    trees = [search.ask(number)[1] for number in range(plan.total)]
    return [(plan.space.shown(tree), plan.trainable.trainer(tree, plan.run_fields)) for tree in trees]


@pytest.mark.parametrize(
    ("trainers", "names"),
    [
        ([first, second], ["first", "second"]),
        ([TorchTrainer(first), DataParallelTrainer(first)], ["TorchTrainer", "DataParallelTrainer"]),
        ([TorchTrainer(first), TorchTrainer(second)], ["first", "second"]),
        ([TorchTrainer(first), TorchTrainer(first)], ["0: first", "1: first"]),
        ([trees("binary:logistic"), trees("binary:hinge")], ["binary:logistic", "binary:hinge"]),
    ],
)
def test_trainers_of_one_sweep_have_different_names(trainers, names):
    tuner = Tuner(tune.grid_search(trainers))
    assert [shown["trainer"] for shown, _ in drawn(tuner)] == names


@pytest.mark.parametrize(
    "given",
    [first, DataParallelTrainer(first), tune.grid_search([TorchTrainer(first), TorchTrainer(second)])],
    ids=["a function", "a trainer", "several trainers"],
)
def test_the_config_of_a_trial_gives_its_trainer_again(given):
    config = {"lr": tune.grid_search([0.1, 0.2])}
    plan = Tuner(given, param_space=config if given is first else {"train_loop_config": config}).plan
    for tree in (Search(plan.space, "random", mode=None, seed=0).ask(number)[1] for number in range(plan.total)):
        trainer, again = plan.trainable.trainer(tree, {}), plan.trainable.chosen(plan.trainable.config(tree))
        assert again.train_loop_per_worker is trainer.train_loop_per_worker
        assert again.train_loop_config == trainer.train_loop_config


def test_each_trainer_keeps_the_settings_that_the_sweep_does_not_set():
    one = DataParallelTrainer(first, run_config=RunConfig(stop={"training_iteration": 3}))
    keeps = CheckpointConfig(num_to_keep=1)
    two = DataParallelTrainer(second, run_config=RunConfig(stop={"training_iteration": 7}, checkpoint_config=keeps))
    tuner = Tuner(tune.grid_search([one, two]), run_config=RunConfig(name="both"))
    configs = [trainer.run_config for _, trainer in drawn(tuner)]
    assert [config.stop for config in configs] == [{"training_iteration": 3}, {"training_iteration": 7}]
    assert [config.checkpoint_config.num_to_keep for config in configs] == [None, 1]
    assert {config.name for config in configs} == {"both"}


def test_the_resources_of_trials_are_known_if_all_trials_need_the_same():
    trainer = DataParallelTrainer(first)
    fixed = Tuner(trainer, param_space={"scaling_config": {"num_workers": 4}}).plan.gang
    assert fixed is not None
    assert fixed.num_workers == 4
    assert Tuner(trainer, param_space={"scaling_config": {"num_workers": tune.choice([1, 2])}}).plan.gang is None
    with pytest.raises(CapacityError, match=r"4 CPU: 8 CPU at once\. The cluster has 6\. Lower it to 1"):
        require_room({"CPU": 6}, 0, 2, fixed)


def test_cpus_for_reading_data_are_not_given_to_trials():
    two = ScalingConfig(num_workers=2)
    require_room({"CPU": 4}, 0, 2, two)
    with pytest.raises(CapacityError, match=r"The cluster has 4, 1 of them reserved for reading data\. Lower it to 1"):
        require_room({"CPU": 4}, 1, 2, two)
    require_room({"CPU": 2}, 1, 1, two)


def test_datasets_to_choose_from_are_inspected_before_anything_starts(tmp_path):
    (tmp_path / "good.csv").write_text("x\n1\n")
    places = [str(tmp_path / "good.csv"), str(tmp_path / "missing.csv")]
    tuner = Tuner(DataParallelTrainer(first), param_space={"datasets": {"train": tune.grid_search(places)}})
    with pytest.raises(DataError, match=r"missing\.csv"):
        _ = tuner.plan


def test_trials_that_copy_each_other_have_to_keep_checkpoints():
    scheduler = PopulationBasedTraining(hyperparam_mutations={"train_loop_config": {"x": [1, 2]}})
    tune_config = TuneConfig(metric="loss", mode="min", scheduler=scheduler)
    keeps_none = {"checkpoint_config": {"num_to_keep": 0}}
    space = {"train_loop_config": {"x": 1}}
    keeps = DataParallelTrainer(first)
    trainers = [keeps, DataParallelTrainer(second, run_config=RunConfig(**keeps_none))]
    for trainer in (trainers[1], tune.choice(trainers)):
        with pytest.raises(ValueError, match=r"resumes trials from checkpoints, but CheckpointConfig\(num_to_keep=0\)"):
            _ = Tuner(trainer, param_space=space, tune_config=tune_config).plan
    plan = Tuner(keeps, param_space={**space, "run_config": keeps_none}, tune_config=tune_config).plan
    point, tree = Search(plan.space, "random", mode=None, seed=0).ask(0)
    broken = plan.trial_of(point, tree).broken
    assert "PopulationBasedTraining resumes trials from checkpoints, but" in str(broken)


def test_a_space_is_a_dict():
    with pytest.raises(TypeError, match="param_space is a list: pass a dict"):
        Tuner(first, param_space=[1, 2])
