"""Flows called as flows: what a deployment does, and what its form shows."""

from __future__ import annotations

import pytest

from flows import PipelineSpec, TrainSpec, pipeline, train
from flows.pipeline import digits


def test_a_flow_called_from_python_trains(driver):
    process = driver(
        """
        from flows import TrainSpec, train
        from trainlib import ScalingConfig
        from trainlib.data.tables import DIGITS, prepare
        from pathlib import Path

        data = prepare(DIGITS, target="target", validation_size=0.2, seed=0, folder=Path("data").absolute())
        files = {"train": data.train, "validation": data.validation, "target": "target"}
        result = train(TrainSpec(
            train_loop="trainlib.demo:train_digits",
            train_loop_config={"num_epochs": 2, "lr": 0.005, "batch_size": 32, "hidden": 16, **files},
            scaling_config=ScalingConfig(num_workers=2),
        ))
        print(result.metrics["training_iteration"], flush=True)
        """
    )
    assert process.wait() == 0, process.output
    assert "\n2\n" in process.output


def test_the_forms_have_a_field_for_every_setting():
    for flow, model in ((train, "TrainSpec"), (pipeline, "PipelineSpec")):
        schema = flow.parameters.model_dump()
        assert model in str(schema["properties"]["spec"])
        assert {"ScalingConfig", "RunConfig", "CheckpointConfig", "FailureConfig"} <= schema["definitions"].keys()
        workers = schema["definitions"]["ScalingConfig"]["properties"]["num_workers"]
        assert workers["type"] == "integer"
        assert "process" in workers["description"]


def test_a_training_function_that_cannot_be_loaded_is_named():
    with pytest.raises(ValueError, match=r"train_loop is 'trainlib\.demo:nothing', but it cannot be loaded"):
        TrainSpec(train_loop="trainlib.demo:nothing").trainer()
    with pytest.raises(ValueError, match="train_loop"):
        TrainSpec(train_loop="no colon")


def test_a_spec_survives_json():
    spec = digits(num_workers=3)
    assert PipelineSpec.model_validate_json(spec.model_dump_json()) == spec
