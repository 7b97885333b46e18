"""Odd names and values go through all layers: Prefect, Ray, MLflow, and back."""

from __future__ import annotations

import pytest

from trainlib import Checkpoint, DataParallelTrainer, RunConfig, session
from trainlib._registry.logged_models import read_checkpoints
from trainlib._registry.models import register, select

ODD = ["/acc", "a//b", "loss/", "..", "", "recall@10", "recall_10", "recall at 10", "x" * 300, "gain%"]
CONFIG = {
    "": 1,
    "a//b": 2,
    "a": {"b": 3},
    "a.b": 4,
    "text": "x" * 1_000_000,
    "number": 10**400,
    "password": "correct horse",
}


def train_func(config: dict) -> dict:
    many = {f"metric {number}": number / 7 for number in range(300)}
    odd = {name: float(index) for index, name in enumerate(ODD)}
    session.report({**odd, **many, "acc@1": 0.5}, checkpoint=Checkpoint.from_dict({"step": 0}))
    return {**config, "text": len(config["text"])}


@pytest.fixture(scope="module")
def trained():
    return DataParallelTrainer(
        train_func, train_loop_config=CONFIG, run_config=RunConfig(name="odd input", verbose=0)
    ).fit()


def test_the_function_gets_the_config_as_it_was_passed(trained):
    assert trained.returned == [{**CONFIG, "text": 1_000_000}]


def test_mlflow_has_every_metric_and_every_param(trained, registry):
    run = registry.get_run(trained.run_id)
    assert sorted(value for name, value in run.data.metrics.items() if "metric " not in name) == [
        0.0,
        0.5,
        *(float(index) for index in range(1, len(ODD))),
    ]
    assert len(run.data.metrics) == len(ODD) + 300 + 1
    values = list(run.data.params.values())
    assert {"1", "2", "3", "4"} <= set(values)
    assert run.data.params["password"] == "********"
    assert not [value for value in values if "correct horse" in value]


def test_metrics_come_back_by_the_names_that_they_were_reported_with(trained):
    assert {name: trained.metrics[name] for name in ODD} == {name: float(index) for index, name in enumerate(ODD)}


def test_a_checkpoint_has_all_metrics_and_can_be_registered_by_any_of_them(trained, registry):
    experiment = registry.get_run(trained.run_id).info.experiment_id
    (saved,) = read_checkpoints(registry, experiment, trained.run_id).saved
    assert len(saved.metrics) == len(ODD) + 300 + 1
    version = register(select([trained.run_id], "acc@1", "max"), "odd model")
    assert version.promoted
    again = register(select([trained.run_id], "acc@1", "max"), "odd model")
    assert (again.promoted, again.previous_score) == (False, 0.5)
