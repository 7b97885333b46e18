"""A deployment's form trains boosted trees without any code."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from trainlib._trainer_form import TrainerChoice
from trainlib.flows import TrainSpec
from trainlib.lightgbm import LightGBMTrainer
from trainlib.xgboost import XGBoostTrainer


@pytest.mark.parametrize(("kind", "trainer"), [("xgboost", XGBoostTrainer), ("lightgbm", LightGBMTrainer)])
def test_a_form_makes_the_trainer_and_shows_it(kind, trainer):
    typed = {"kind": kind, "params": {"eta": 0.3}, "num_boost_round": 20, f"{kind}_config": {"timeout_s": 90}}
    form = TypeAdapter(TrainerChoice).validate_python(typed).with_target("income")
    made = TrainSpec(trainer=form, scaling_config={"num_workers": 2}, datasets={"train": "rows.parquet"}).build()
    assert type(made) is trainer
    assert made.backend_config.timeout_s == 90
    assert made.train_loop_config == {
        "params": {"eta": 0.3},
        "label_column": "income",
        "num_boost_round": 20,
        "dmatrix_params": {},
    }
    assert made.dataset_config.splits("valid"), "each worker evaluates its share"
    assert TrainSpec.of(made).trainer.model_dump() == form.model_dump()
    schema = TypeAdapter(TrainerChoice).json_schema()["$defs"][f"{trainer.__name__.removesuffix('Trainer')}Form"]
    assert all(field["description"] for field in schema["properties"].values())
