"""Flows called as flows: what a deployment does, and what its form shows."""

from __future__ import annotations

import json

import pytest

from tests.integration.conftest import drivers
from trainlib.flows import PipelineSpec, TrainSpec, TuneSpec, pipeline, preprocess, train, tune
from trainlib.flows import _embedded as embedded
from trainlib.flows.demo import digits

SCRIPT = """
    import flows, tasks
    from trainlib import DataParallelTrainer, ScalingConfig, session
    from trainlib.demo import digits_file
    from trainlib.flows import PreprocessSpec, TrainSpec, preprocess, train

    data = preprocess(PreprocessSpec(source=str(digits_file()), target="target"))
    result = train(TrainSpec(
        train_loop="trainlib.demo:train_digits",
        train_loop_config={"num_epochs": 2, "lr": 0.005, "batch_size": 32, "hidden": 16},
        scaling_config=ScalingConfig(num_workers=2),
    ).on(data))
    print(result.metrics["training_iteration"], flush=True)

    def loop():
        import flows, tasks
        session.report({"names": len([flows.NAME, tasks.NAME])})

    print(flows.NAME, "and", tasks.NAME, DataParallelTrainer(loop).fit().metrics["names"], flush=True)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """The output of a script beside a user's own ``flows`` and ``tasks``."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "flows").mkdir()
    (folder / "flows" / "__init__.py").write_text("NAME = 'the user\\'s flows'\n")
    (folder / "tasks.py").write_text("NAME = 'the user\\'s tasks'\n")
    with drivers(folder) as driver:
        process = driver(SCRIPT, own_server=True)
        assert process.wait() == 0, process.output
    return process.output


def test_a_flow_called_from_python_trains(printed):
    assert "\n2\n" in printed


def test_a_users_own_flows_and_tasks_do_not_shadow_ours(printed):
    assert "the user's flows and the user's tasks 2" in printed


def test_the_form_of_preprocess_has_a_section_for_each_part():
    definitions = preprocess.parameters.model_dump()["definitions"]
    assert {"PreprocessSpec", "SplitSpec", "StepSpec"} <= definitions.keys()
    assert definitions["SplitSpec"]["properties"]["by"]["enum"] == ["shuffle", "stratify", "time", "hash"]


def test_the_forms_have_a_field_for_every_setting():
    for flow, model in ((train, "TrainSpec"), (pipeline, "PipelineSpec"), (tune, "TuneSpec")):
        schema = flow.parameters.model_dump()
        assert model in str(schema["properties"]["spec"])
        assert {"ScalingConfig", "RunConfig", "CheckpointConfig", "FailureConfig"} <= schema["definitions"].keys()
        workers = schema["definitions"]["ScalingConfig"]["properties"]["num_workers"]
        assert workers["type"] == "integer"
        assert "process" in workers["description"]


def test_forms_have_no_data_and_no_model_of_their_own():
    preparing = preprocess.parameters.model_dump()["definitions"]["PreprocessSpec"]
    assert preparing["required"] == ["source"]
    assert "default" not in preparing["properties"]["source"]
    whole = pipeline.parameters.model_dump()["definitions"]["PipelineSpec"]
    assert whole["required"] == ["data", "train", "model_name"]


def test_a_training_function_that_cannot_be_loaded_is_named():
    with pytest.raises(ValueError, match=r"train_loop is 'trainlib\.demo:nothing', but it cannot be loaded"):
        TrainSpec(train_loop="trainlib.demo:nothing").trainer()
    with pytest.raises(ValueError, match="train_loop"):
        TrainSpec(train_loop="no colon")


def test_a_spec_survives_json():
    spec = digits(num_workers=3)
    assert PipelineSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_sweep_can_be_written_into_a_form():
    form = {
        "train": {"train_loop": "trainlib.demo:train_digits", "framework": "function"},
        "param_space": {"train_loop_config": {"lr": {"loguniform": [0.001, 0.1]}, "hidden": {"grid_search": [8, 16]}}},
        "tune_config": {
            "metric": "accuracy",
            "mode": "max",
            "num_samples": 3,
            "search_alg": "tpe",
            "scheduler": "asha",
        },
    }
    spec = TuneSpec.model_validate_json(json.dumps(form))
    assert spec.title == "DataParallelTrainer · 6 trials"
    assert list(spec.tuner().plan.space.domains) == ["lr", "hidden"]
    schema = tune.parameters.model_dump()["definitions"]["TuneConfig"]["properties"]
    assert schema["search_alg"]["enum"] == ["random", "tpe", "cmaes", "gp"]
    assert schema["scheduler"]["enum"] == ["fifo", "asha", "hyperband", "median"]
    assert all(field["description"] for field in schema.values())


def test_a_sweep_runs_as_a_flow_called_from_python(tmp_path, monkeypatch):
    embedded.start()
    embedded.wait()
    (tmp_path / "my_loop.py").write_text(
        "from trainlib import report, trainable\n@trainable\ndef loop(config):\n    report(loss=config['x'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    results = tune(
        TuneSpec(
            train=TrainSpec(train_loop="my_loop:loop", framework="function"),
            param_space={"train_loop_config": {"x": {"grid_search": [1, 2]}}},
            tune_config={"metric": "loss", "mode": "min"},
        )
    )
    assert [result.metrics["loss"] for result in results] == [1, 2]
