"""Flows called as flows: what a deployment does, and what its form shows."""

from __future__ import annotations

import json

import pytest

from tests.integration.conftest import drivers
from trainlib.flows import PipelineSpec, TrainSpec, TuneSpec, sweep
from trainlib.flows import _embedded as embedded
from trainlib.flows.demo import digits

SCRIPT = """
    import flows, tasks
    from trainlib import DataParallelTrainer, session
    from trainlib.demo import digits_file
    from trainlib.flows import preprocess, train

    data = preprocess(source=str(digits_file()), target="target")
    config = {"num_epochs": 2, "lr": 0.005, "batch_size": 32, "hidden": 16, "target": "target"}
    result = train(
        trainer={"kind": "torch", "train_loop": "trainlib.demo:train_digits", "train_loop_config": config},
        num_workers=2,
        datasets=data.datasets,
    )
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


def test_a_training_function_that_cannot_be_loaded_is_named():
    with pytest.raises(ValueError, match=r"train_loop is 'trainlib\.demo:nothing', but it cannot be loaded"):
        TrainSpec(trainer={"kind": "torch", "train_loop": "trainlib.demo:nothing"}).build()
    with pytest.raises(ValueError, match="train_loop"):
        TrainSpec(trainer={"kind": "torch", "train_loop": "no colon"})


def test_a_spec_survives_json():
    spec = digits(num_workers=3)
    assert PipelineSpec.model_validate_json(spec.model_dump_json()).model_dump() == spec.model_dump()


def test_a_sweep_can_be_written_into_a_form():
    form = {
        "train": {"trainer": {"kind": "function", "train_loop": "trainlib.demo:train_digits"}},
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
    assert spec.tuner().plan.total == 6
    assert list(spec.tuner().plan.space.domains) == ["lr", "hidden"]


def test_a_sweep_runs_as_a_flow_called_from_python(tmp_path, monkeypatch):
    embedded.start()
    embedded.wait()
    (tmp_path / "my_loop.py").write_text(
        "from trainlib import report, trainable\n@trainable\ndef loop(config):\n    report(loss=config['x'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    results = sweep(
        trainer={"kind": "function", "train_loop": "my_loop:loop"},
        param_space={"train_loop_config": {"x": {"grid_search": [1, 2]}}},
        metric="loss",
        mode="min",
    )
    assert [result.metrics["loss"] for result in results] == [1, 2]
