"""A form names a framework, and creates that framework's trainer."""

from __future__ import annotations

import pytest

from trainlib import DataParallelTrainer
from trainlib.flows.spec import TrainSpec
from trainlib.horovod import HorovodTrainer
from trainlib.tensorflow import TensorflowTrainer
from trainlib.torch import TorchTrainer

TRAINERS = {
    "torch": TorchTrainer,
    "tensorflow": TensorflowTrainer,
    "horovod": HorovodTrainer,
    "function": DataParallelTrainer,
}


@pytest.mark.parametrize("framework", TRAINERS)
def test_the_framework_of_a_form_decides_the_trainer(framework):
    trainer = TrainSpec(train_loop="trainlib.demo:train_digits", framework=framework).trainer()
    assert type(trainer) is TRAINERS[framework]
    assert trainer.backend_config.framework == framework
    assert TrainSpec.of(trainer).framework == framework


def test_every_framework_can_be_chosen():
    choices = TrainSpec.model_json_schema()["properties"]["framework"]["enum"]
    assert set(choices) == set(TRAINERS)
