"""What runs are called that nobody has given a name."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from trainlib import DataParallelTrainer, ScalingConfig
from trainlib._training.naming import sweep_name, training_name
from trainlib.huggingface import TransformersTrainer
from trainlib.rl import RLTrainer
from trainlib.sklearn import SklearnTrainer
from trainlib.xgboost import XGBoostTrainer

NOW = datetime(2026, 1, 31, 9, 30)


def classify(config):
    pass


def build_trainer(train_dataset, eval_dataset=None, **config):
    pass


class Classify:
    def __call__(self, config):
        pass


@pytest.mark.parametrize(
    ("function", "name"),
    [(classify, "classify"), (partial(classify), "classify"), (Classify(), "Classify"), (lambda config: None, None)],
)
def test_a_training_is_called_by_its_trainer_and_its_function(function, name):
    trainer = DataParallelTrainer(function, scaling_config=ScalingConfig(num_workers=2))
    assert training_name(trainer, NOW) == f"DataParallelTrainer_2026-01-31_09-30-00 · {name or 'a function'} x2"


def test_a_trainer_with_a_function_of_its_own_is_called_by_what_it_was_given():
    rows = {"train": pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]})}
    trees = XGBoostTrainer(params={"objective": "binary:logistic"}, label_column="y", datasets=rows)
    forest = SklearnTrainer(RandomForestClassifier(), label_column="y", datasets=rows)
    policy = RLTrainer("PPO", config={"env": "CartPole-v1"})
    language = TransformersTrainer(build_trainer)
    names = [training_name(trainer, NOW).split(" · ")[1] for trainer in (trees, forest, policy, language)]
    assert names == ["binary:logistic x1", "RandomForestClassifier x1", "PPO x1", "build_trainer x1"]


def test_the_name_of_a_sweep_over_much_is_still_short():
    name = sweep_name("classify", [f"model.layer_{number}" for number in range(50)], NOW)
    assert name.startswith("sweep · classify over layer_0, layer_1, ")
    assert name.endswith("… · 2026-01-31 09:30:00")
    assert len(name) < 100
    assert sweep_name("classify", [], NOW) == "sweep · classify · 2026-01-31 09:30:00"
