"""A form names a framework, and creates that framework's trainer."""

from __future__ import annotations

import inspect

import pytest
from pydantic import ValidationError

from trainlib import DataParallelTrainer, RunConfig
from trainlib import _rooms as rooms
from trainlib.callbacks import Callback
from trainlib.execution import BackendConfig
from trainlib.flows import TuneSpec, sweep, train
from trainlib.flows.spec import TrainSpec
from trainlib.torch import TorchConfig
from trainlib.tune import ASHAScheduler, TuneConfig, Tuner


@pytest.mark.parametrize("framework", [name for name in rooms.choices() if rooms.load(name).form is None])
def test_the_framework_of_a_form_decides_the_trainer(framework):
    trainer = TrainSpec(trainer={"kind": framework, "train_loop": "trainlib.demo:train_digits"}).build()
    assert type(trainer) is rooms.load(framework).trainer_class()
    assert trainer.backend_config.framework == framework
    assert TrainSpec.of(trainer).trainer.kind == framework


def test_a_framework_that_does_not_exist_is_refused():
    with pytest.raises(ValidationError, match=r"trainer\n.*'jax'.* 'function', 'torch', 'tensorflow', 'horovod'"):
        TrainSpec(trainer={"kind": "jax", "train_loop": "trainlib.demo:train_digits"})


def train_func() -> None:
    pass


def test_a_flow_does_not_inspect_again_what_fit_has_inspected(tmp_path):
    (tmp_path / "points.csv").write_text("x\n1\n2\n")
    trainer = rooms.load("function").trainer_class()(train_func, datasets={"train": str(tmp_path / "points.csv")})
    inspected = trainer.inspect()
    assert TrainSpec.of_inspected(inspected).inspected() is inspected
    assert inspected.sources["train"].rows == 2


def test_a_deployment_inspects_its_trainer_itself(tmp_path):
    form = {"kind": "torch", "train_loop": "trainlib.demo:train_digits"}
    spec = TrainSpec(trainer=form, datasets={"train": str(tmp_path / "missing.csv")})
    with pytest.raises(FileNotFoundError, match=r"missing\.csv"):
        spec.inspected()


def test_what_prefect_shows_of_fit_is_readable_and_the_flow_gets_the_very_trainer():
    trainer = rooms.load("torch").trainer_class()(
        train_func,
        train_loop_config={"lr": 0.1, "password": "hunter2", "loss": print},
        torch_config=TorchConfig(timeout_s=60),
        scaling_config={"num_workers": 2},
        run_config=RunConfig(name="digits", stop=lambda trial_id, result: True, callbacks=[Callback()]),
    )
    inspected = trainer.inspect()
    given = TrainSpec.of_inspected(inspected).parameters()
    assert train.serialize_parameters(given) == {
        "trainer": {
            "kind": "torch",
            "train_loop": f"{__name__}:train_func",
            "train_loop_config": {"lr": 0.1, "password": "********", "loss": "<built-in function print>"},
            "torch_config": {"timeout_s": 60},
        },
        "num_workers": 2,
        "name": "digits",
        "datasets": {},
        "scaling_config": {"num_workers": 2},
        "run_config": {"name": "digits", "stop": given["run_config"].stop},
        "dataset_config": {},
    }
    taken = train.validate_parameters(given)
    defaults = {name: each.default for name, each in inspect.signature(train.fn).parameters.items()}
    assert TrainSpec.of_parameters(**{**defaults, **taken}).inspected() is inspected


def test_settings_of_a_users_own_are_shown_by_their_name():
    class MyConfig(BackendConfig):
        framework = "mine"

    trainer = DataParallelTrainer(train_func, backend_config=MyConfig())
    taken = train.validate_parameters(TrainSpec.of(trainer).parameters())
    assert taken["trainer"].kind == "mine"
    assert taken["trainer"]._given is trainer


def test_what_prefect_shows_of_a_tuner_is_where_its_form_asks_for_it():
    config = TuneConfig(metric="loss", mode="min", num_samples=3, search_alg="tpe", scheduler=ASHAScheduler(max_t=9))
    tuner = Tuner(DataParallelTrainer(train_func), tune_config=config, run_config=RunConfig(name="digits-sweep"))
    given = TuneSpec.of(tuner).parameters()
    shown = sweep.serialize_parameters(given)
    assert {name: shown[name] for name in ("metric", "mode", "num_samples", "search_alg", "name")} == {
        "metric": "loss",
        "mode": "min",
        "num_samples": 3,
        "search_alg": "tpe",
        "name": "digits-sweep",
    }
    assert list(shown["tune_config"]) == ["scheduler"]
    assert "ASHAScheduler" in shown["tune_config"]["scheduler"] or "AsyncHyperBand" in shown["tune_config"]["scheduler"]
    assert sweep.validate_parameters(given)["trainer"]._given is tuner
