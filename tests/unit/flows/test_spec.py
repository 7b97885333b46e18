"""A form names a framework, and creates that framework's trainer."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainlib import _rooms as rooms
from trainlib.flows.spec import TrainSpec
from trainlib.flows.train import train


@pytest.mark.parametrize("framework", rooms.choices())
def test_the_framework_of_a_form_decides_the_trainer(framework):
    trainer = TrainSpec(train_loop="trainlib.demo:train_digits", framework=framework).trainer()
    assert type(trainer) is rooms.load(framework).trainer_class()
    assert trainer.backend_config.framework == framework
    assert TrainSpec.of(trainer).framework == framework


def test_every_framework_can_be_chosen():
    field = TrainSpec.model_json_schema()["properties"]["framework"]
    assert field["enum"] == ["torch", "tensorflow", "horovod", "function"]
    assert (field["type"], field["default"], field["position"]) == ("string", "torch", 1)
    assert train.parameters.model_dump()["definitions"]["TrainSpec"]["properties"]["framework"]["enum"] == field["enum"]


def test_a_framework_that_does_not_exist_is_refused():
    with pytest.raises(ValidationError, match="framework is 'jax': choose one of torch, tensorflow, horovod, function"):
        TrainSpec(train_loop="trainlib.demo:train_digits", framework="jax")


def train_func() -> None:
    pass


def test_a_flow_does_not_inspect_again_what_fit_has_inspected(tmp_path):
    (tmp_path / "points.csv").write_text("x\n1\n2\n")
    trainer = rooms.load("function").trainer_class()(train_func, datasets={"train": str(tmp_path / "points.csv")})
    inspected = trainer.inspect()
    assert TrainSpec.of_inspected(inspected).inspected() is inspected
    assert inspected.sources["train"].rows == 2


def test_a_deployment_inspects_its_trainer_itself(tmp_path):
    spec = TrainSpec(train_loop="trainlib.demo:train_digits", datasets={"train": str(tmp_path / "missing.csv")})
    with pytest.raises(FileNotFoundError, match=r"missing\.csv"):
        spec.inspected()
