"""Flows called as flows: what a deployment does, and what its form shows."""

from __future__ import annotations

import pytest

from flows import PipelineSpec, TrainSpec, pipeline, preprocess, train
from flows.pipeline import digits


def test_a_flow_called_from_python_trains(driver):
    process = driver(
        """
        from flows import TrainSpec, train
        from trainlib import ScalingConfig
        from flows import PreprocessSpec, preprocess

        data = preprocess(PreprocessSpec(source="sklearn:digits", target="target"))
        result = train(TrainSpec(
            train_loop="trainlib.demo:train_digits",
            train_loop_config={"num_epochs": 2, "lr": 0.005, "batch_size": 32, "hidden": 16},
            scaling_config=ScalingConfig(num_workers=2),
        ).on(data))
        print(result.metrics["training_iteration"], flush=True)
        """
    )
    assert process.wait() == 0, process.output
    assert "\n2\n" in process.output


def test_the_form_of_preprocess_has_a_section_for_each_part():
    definitions = preprocess.parameters.model_dump()["definitions"]
    assert {"PreprocessSpec", "SplitSpec", "StepSpec"} <= definitions.keys()
    assert definitions["SplitSpec"]["properties"]["by"]["enum"] == ["shuffle", "stratify", "time", "hash"]


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
