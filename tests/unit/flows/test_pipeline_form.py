"""The pipeline's form, what it refuses before anything starts, and what people read at its end."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.exceptions import ParameterTypeError

from trainlib import _rooms as rooms
from trainlib._data.manifest import PreprocessedData
from trainlib._registry.models import HeldOutScores, ModelVersion, Selection
from trainlib._registry.promotion import Basis, Decision, Verdict
from trainlib._trainable import trainable
from trainlib.deployments.listed import listed
from trainlib.flows import PipelineSpec, TrainSpec, pipeline, rollback
from trainlib.flows._promoting import question
from trainlib.flows.demo import digits
from trainlib.flows.spec import Prepared
from trainlib.tasks._pipeline_summary import PipelineFacts, summary_of

TRAINER = {"kind": "function", "train_loop": "trainlib.demo:train_digits"}
LISTED = {each.name: each for each in listed()}


@trainable
def takes_only_a_checkpoint(checkpoint: Any) -> dict[str, float]:
    return {}


def spec(**changes: Any) -> PipelineSpec:
    data = {"source": "people.csv", "split": {"test_size": 0.1}}
    return PipelineSpec(**{"data": data, "train": {"trainer": TRAINER}, "model_name": "people", **changes})


def test_what_people_change_comes_first_and_every_field_has_help():
    schema = pipeline.parameters.model_dump()
    fields = schema["properties"]
    first = ["source", "model_name", "trainer", "target", "metric", "mode", "evaluate", "num_workers"]
    assert sorted(fields, key=lambda name: fields[name]["position"])[: len(first)] == first
    for name, field in fields.items():  # a section's is that of its model
        about = schema["definitions"].get(field.get("$ref", "").rpartition("/")[2], field)
        assert field.get("description") or about.get("description"), name
    assert schema["required"] == ["source", "model_name", "trainer"]


@pytest.mark.parametrize(("flow", "name"), [(pipeline, "pipeline"), (pipeline, "nightly"), (rollback, "rollback")])
def test_an_untouched_form_is_valid(flow, name):
    flow.validate_parameters(LISTED[name].parameters)


def test_a_nightly_run_is_scheduled_and_never_beside_another_one():
    nightly = LISTED["nightly"]
    assert nightly.entrypoint == LISTED["pipeline"].entrypoint
    assert nightly.schedules == [{"cron": "0 3 * * *", "timezone": "UTC", "active": True}]
    assert nightly.concurrency_limit == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


def test_the_pipeline_holds_rows_out_by_default(tmp_path, monkeypatch):
    given = {"source": "people.csv", "model_name": "people", "trainer": TRAINER}
    assert pipeline.validate_parameters(given)["split"].test_size == 0.1
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    parameters = pipeline.validate_parameters(digits().parameters())
    assert parameters["split"].test_size == 0.1
    assert parameters["run_config"].checkpoint_config.num_to_keep == 2


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"model_name": "a/b"}, "cannot be the name of a model in MLflow"),
        ({"alias": "latest"}, "has a meaning of its own in MLflow"),
        ({"alias": "v3"}, "has a meaning of its own in MLflow"),
        ({"alias": "a b"}, "alias"),
        ({"approval": {"required": True, "within_hours": 0}}, "within_hours"),
        ({"split": {"size": 0.9, "test_size": 0.1}}, "leaves no rows for training"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(changed, what):
    given = {"source": "people.csv", "model_name": "people", "trainer": TRAINER, **changed}
    with pytest.raises(ParameterTypeError, match=what) as refused:
        pipeline.validate_parameters(given)
    assert next(iter(changed)) in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"evaluate": "trainlib.demo:nothing"}, r"evaluate is 'trainlib\.demo:nothing', but it cannot be loaded"),
        ({"evaluate": "os:system"}, "evaluate is 'os:system', which is not marked as a function that forms may name"),
        ({"evaluate": f"{__name__}:takes_only_a_checkpoint"}, "cannot be called with a checkpoint and a dataset"),
        (
            {"evaluate": "trainlib.demo:evaluate_digits", "data": {"source": "people.csv"}},
            "no rows are held out for it. Set split.test_size",
        ),
    ],
)
def test_an_evaluation_that_cannot_be_made_is_refused(changed, what):
    with pytest.raises(ValueError, match=what):
        spec(**changed).evaluation_function()


@trainable
def init_transformers(train_dataset: Any, eval_dataset: Any = None, **config: Any) -> Any:
    raise AssertionError("only workers call it")


CLONED = {
    "algorithm": "BC",
    "config": {"env": "CartPole-v1", "evaluation_interval": 1, "dataset_num_iters_per_learner": 1},
}
OF_EACH_KIND = {
    "function": TRAINER,
    **{kind: {**TRAINER, "kind": kind} for kind in ("torch", "tensorflow", "horovod", "accelerate")},
    "xgboost": {"kind": "xgboost", "params": {"objective": "binary:logistic"}},
    "lightgbm": {"kind": "lightgbm", "params": {"objective": "binary"}},
    "sklearn": {"kind": "sklearn", "estimator": "sklearn.linear_model:LogisticRegression"},
    "huggingface": {"kind": "huggingface", "trainer_init_per_worker": f"{__name__}:init_transformers"},
    "rl": {"kind": "rl", **CLONED},
}
DATA = {"source": "people.csv", "target": "income"}


def test_trainers_of_all_kinds_take_the_data_of_a_pipeline():
    assert set(OF_EACH_KIND) == set(rooms.choices())
    for kind, trainer in OF_EACH_KIND.items():
        spec(data=DATA, train={"trainer": trainer}).require_possible()
        built = TrainSpec(trainer=trainer).on(Prepared(train="a.csv", validation="b.csv", target="income")).build()
        assert built.datasets["train"] == "a.csv", kind
        assert list(built.datasets)[1:] == {"huggingface": ["evaluation"], "rl": []}.get(kind, ["validation"])


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"train": {"trainer": {**OF_EACH_KIND["xgboost"], "params": {"objectiv": "x"}}}}, "objectiv"),
        ({"compare_with": [{**OF_EACH_KIND["sklearn"], "params": {"no_such": 1}}]}, "no_such"),
        ({"train": {"trainer": OF_EACH_KIND["sklearn"], "scaling_config": {"num_workers": 2}}}, "one process"),
        ({"param_space": {"params": {"eta": {"uniform": [0, 1]}}}}, "param_space has 'params', but .* no such setting"),
    ],
)
def test_trainers_that_cannot_be_made_are_refused_before_data_are_read(changed, what):
    with pytest.raises(ValueError, match=what):
        spec(data=DATA, **changed).require_possible()


def test_an_evaluation_is_not_needed():
    assert spec().evaluation_function() is None
    assert spec(evaluate="trainlib.demo:evaluate_digits").evaluation_function().__name__ == "evaluate_digits"


def test_nobody_is_asked_unless_it_is_required():
    assert spec().approval.seconds is None
    assert spec(approval={"required": True, "within_hours": 0.5}).approval.seconds == 1800


BETTER = Decision(Verdict.BETTER, Basis.HELD_OUT, 0.97, 0.96, "3")


def test_a_question_shows_both_scores():
    asked = question("digits", "best", "4", "accuracy", BETTER)
    for part in (
        "Promote version 4 of digits?",
        "| new | 4 | **0.97** |",
        "| `best` now | 3 | 0.96 |",
        "held-out rows",
    ):
        assert part in asked
    first = question("digits", "best", "1", "accuracy", Decision(Verdict.FIRST, Basis.HELD_OUT, 0.97))
    assert "held by no version" in first
    assert "| `best` now | - | - |" in first


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (
            BETTER,
            ["digits version 4: promoted", "The alias `best` points to it now: it is better", "| `best` before | 3 |"],
        ),
        (
            BETTER.instead(Verdict.DECLINED),
            ["digits version 4: not promoted", "`best` was not moved: it was declined."],
        ),
        (
            Decision(Verdict.NOT_BETTER, Basis.EARLIER_ROWS, 0.9, 0.96, "3", "its files are gone"),
            ["not promoted", "could not be evaluated on the same rows: its files are gone", "rows held out for each"],
        ),
    ],
)
def test_the_summary_says_what_was_promoted_and_why(decision, told):
    data = PreprocessedData(
        "digits.csv",
        "d",
        "/f",
        "/f/train",
        "/f/validation",
        "target",
        [],
        {},
        80,
        10,
        "d",
        "1",
        "Scaler(a|b)",
        None,
        "",
        "/f/t",
        10,
    )
    text = summary_of(
        PipelineFacts(
            data=data,
            best={"train_loop_config.lr": 0.01},
            selection=Selection("run", "model", "/c", 7, "accuracy", "max", 0.98),
            held_out=HeldOutScores({"accuracy": 0.97}, 10, "d", "c"),
            version=ModelVersion("digits", "4", "best", decision.is_promoted, decision.old),
            decision=decision,
            links={"Version 4 in MLflow": "http://mlflow/#/models/digits/versions/4"},
        )
    )
    for part in [
        *told,
        "| rows held out | 10 |",
        "(best of the sweep) | `0.01` |",
        "iteration 7",
        "(http://mlflow/#/models",
    ]:
        assert part in text
    assert r"Scaler(a\|b)" in text, "it does not end a cell"


def test_the_sweep_of_a_pipeline_compares_by_its_metric():
    """A search that learns from a metric needs one. The function that evaluates is looked at after that."""
    space = {"train_loop_config": {"lr": {"uniform": [0, 1]}}}
    given = {"source": "people.csv", "model_name": "people", "trainer": TRAINER, "param_space": space}
    searched = {"search_alg": "tpe", "scheduler": "asha", "metric": "accuracy", "evaluate": "trainlib.demo:nothing"}
    with pytest.raises(ValueError, match=r"evaluate is 'trainlib\.demo:nothing'"):
        pipeline.fn(**pipeline.validate_parameters({**given, **searched}))


def test_settings_that_cannot_be_tried_are_refused_before_anything_starts():
    space = {"train_loop_config": {"lr": {"uniform": [0]}}}
    given = {"source": "people.csv", "model_name": "people", "trainer": TRAINER, "param_space": space}
    with pytest.raises(ValueError, match="lr"):
        pipeline.fn(**pipeline.validate_parameters(given))
