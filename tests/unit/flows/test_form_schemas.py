"""What a person sees who opens a deployment's form, and what the form refuses."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from prefect.exceptions import ParameterTypeError
from prefect.utilities.schema_tools.validation import ValidationError, validate

from trainlib import CheckpointConfig, DivergenceConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib import _rooms as rooms
from trainlib._data.sources import inspect_source
from trainlib._data.spec import STEPS, SplitSpec, StepSpec
from trainlib.errors import DataNotFoundError, InvalidArgumentError
from trainlib.flows import (
    TrainSpec,
    TuneSpec,
    fork,
    forms,
    pipeline,
    predict,
    preprocess,
    resume,
    retention,
    rollback,
    sweep,
    train,
)
from trainlib.flows.demo_data import located
from trainlib.flows.preprocess import preprocess_spec_of
from trainlib.tune import TuneConfig

FLOWS = [train, sweep, preprocess, pipeline, predict, retention, resume, fork, rollback]
TRAINER = {"kind": "torch", "train_loop": "trainlib.demo:train_digits"}


def schema_of(flow: Any) -> dict[str, Any]:
    return flow.parameters.model_dump_for_openapi()


def properties(node: Any):
    """All fields of a form, with their names."""
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for child in node.values():
            yield from properties(child)


@pytest.mark.parametrize(
    ("flow", "first"),
    [
        (train, ["trainer", "num_workers", "name", "datasets"]),
        (sweep, ["trainer", "param_space", "metric", "mode", "num_samples", "num_workers", "name"]),
        (preprocess, ["source", "target", "steps", "split"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_people_change_comes_first(flow, first):
    fields = schema_of(flow)["properties"]
    assert sorted(fields, key=lambda name: fields[name]["position"])[: len(first)] == first


def test_a_trainer_shows_only_its_own_fields():
    schema = schema_of(train)
    assert "oneOf" not in str(schema), "one of Prefect's UIs does not know it"
    forms_by_kind = {}
    for choice in schema["properties"]["trainer"]["anyOf"]:
        form = schema["definitions"][choice["$ref"].rpartition("/")[2]]
        forms_by_kind[form["properties"]["kind"]["enum"][0]] = set(form["properties"]) - {"kind"}
    common = {"train_loop", "train_loop_config"}
    boosted = {"params", "label_column", "num_boost_round", "dmatrix_params", "early_stopping_rounds"}
    assert next(iter(forms_by_kind)) == "function", "it has no field of its own that would tell it from the others"
    assert forms_by_kind == {
        "function": common,
        "torch": common | {"torch_config"},
        "tensorflow": common | {"tensorflow_config"},
        "horovod": common | {"horovod_config"},
        "xgboost": boosted | {"xgboost_config"},
        "lightgbm": boosted | {"lightgbm_config"},
        "sklearn": set(rooms.load("sklearn").own_arguments),
        "huggingface": {"trainer_init_per_worker", "trainer_init_config"},
        "accelerate": common | {"accelerate_config"},
        "rl": {"algorithm", "config"},
    }
    assert set(forms_by_kind) == set(rooms.choices())


def test_what_is_picked_from_a_list_is_a_dropdown():
    sweeping, preparing = schema_of(sweep), schema_of(preprocess)["definitions"]
    chosen = {name: sweeping["properties"][name]["enum"] for name in ("mode", "search_alg", "scheduler")}
    assert chosen == {
        "mode": ["max", "min"],
        "search_alg": ["random", "tpe", "cmaes", "gp"],
        "scheduler": ["fifo", "asha", "hyperband", "median"],
    }
    assert preparing["SplitSection"]["properties"]["by"]["enum"] == ["shuffle", "stratify", "time", "hash"]
    assert preparing["StepSection"]["properties"]["name"]["enum"] == list(STEPS)
    backend = sweeping["definitions"]["TorchConfig"]["properties"]["backend"]
    assert backend["enum"] == ["gloo", "nccl", "mpi"]


def test_a_form_offers_all_of_rays_preprocessors_that_need_no_function():
    from ray.data import preprocessors

    assert set(STEPS) == set(preprocessors.__all__) - {"Chain", "TorchVisionPreprocessor"}


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_field_has_help_and_none_is_a_choice_of_none(flow):
    schema = schema_of(flow)
    schema["definitions"].pop("PreprocessedDataset", None)  # which only Python passes
    for name, field in properties(schema):
        about = schema["definitions"].get(field.get("$ref", "").rpartition("/")[2], field)
        assert field.get("description") or about.get("description"), name
        assert {"type": "null"} not in field.get("anyOf", []), name
        assert "position" in field, name


@pytest.mark.parametrize(
    ("flow", "settings", "section"),
    [
        (train, ScalingConfig, "ScalingSection"),
        (train, RunConfig, "RunSection"),
        (train, CheckpointConfig, "CheckpointSection"),
        (train, FailureConfig, "FailureSection"),
        (sweep, TuneConfig, "TuneSection"),
        (preprocess, SplitSpec, "SplitSection"),
        (preprocess, StepSpec, "StepSection"),
    ],
)
def test_every_setting_is_in_the_form(flow, settings, section):
    schema = schema_of(flow)
    asked = set(schema["properties"]) | set(schema["definitions"][section]["properties"])
    only_in_python = {"callbacks", "trial_name_creator"}
    assert set(settings.model_fields) - only_in_python <= asked


@pytest.mark.parametrize(
    ("flow", "values", "field"),
    [
        (train, {"num_workers": 0}, "num_workers"),
        (train, {"num_workers": "two"}, "num_workers"),
        (train, {"trainer": {"kind": "jax", "train_loop": "a:b"}}, "trainer"),
        (train, {"trainer": {**TRAINER, "torch_config": {"timeout_s": 0}}}, "trainer.torch_config.timeout_s"),
        (train, {"trainer": {**TRAINER, "horovod_config": {}}}, "trainer"),
        (train, {"scaling_config": {"placement_strategy": "NEAR"}}, "scaling_config.placement_strategy"),
        (train, {"checkpoint_config": {"num_to_keep": -1}}, "checkpoint_config.num_to_keep"),
        (train, {"run_config": {"name": "twice"}}, "run_config"),
        (sweep, {"mode": "most"}, "mode"),
        (sweep, {"compare_with": [{"kind": "jax"}]}, r"compare_with\[0\]"),
        (sweep, {"search_alg": "magic"}, "search_alg"),
        (preprocess, {"split": {"by": "magic"}}, "split.by"),
        (preprocess, {"steps": [{"name": "Magic"}]}, r"steps\[0\].name"),
    ],
)
def test_a_form_refuses_a_bad_value_by_the_name_of_its_field(flow, values, field):
    """As Prefect's server does it, before there is a run."""
    good = {"source": "people.csv"} if flow is preprocess else {"trainer": TRAINER}
    validate(good, schema_of(flow), raise_on_error=True)
    with pytest.raises(ValidationError, match=rf"field '{field}'"):
        validate({**good, **values}, schema_of(flow), raise_on_error=True)


@pytest.mark.parametrize(
    ("flow", "values", "message"),
    [
        (
            train,
            {"trainer": {"kind": "torch", "train_loop": "no colon"}},
            r"trainer\.torch\.train_loop: .*module:function",
        ),
        (train, {"trainer": {**TRAINER, "train_loop_config": []}}, r"trainer\.torch\.train_loop_config"),
        (train, {"num_workers": 0}, "num_workers"),
        (train, {"scaling_config": {"use_gpu": True, "resources_per_worker": {"GPU": 0}}}, "use_gpu"),
        (sweep, {"tune_config": {"max_concurrent_trials": 0}}, "max_concurrent_trials"),
        (sweep, {"compare_with": [{"kind": "torch", "train_loop": "no colon"}]}, r"compare_with\.0\.torch\.train_loop"),
        (preprocess, {"split": {"by": "hash"}}, "hash needs a column"),
    ],
)
def test_a_run_with_a_bad_value_ends_at_once_and_names_the_field(flow, values, message):
    """As Prefect's engine does it, before the flow starts."""
    good = {"source": "people.csv"} if flow is preprocess else {"trainer": TRAINER}
    flow.validate_parameters(good)
    with pytest.raises(ParameterTypeError, match=message):
        flow.validate_parameters({**good, **values})


def spec_of(**given: Any) -> TrainSpec:
    """What the flow train makes of its parameters."""
    defaults = {name: each.default for name, each in inspect.signature(train.fn).parameters.items()}
    return TrainSpec.of_parameters(**train.validate_parameters({**defaults, "trainer": TRAINER, **given}))


def test_what_a_form_cannot_know_ends_the_flow_before_anything_starts(tmp_path):
    with pytest.raises(ValueError, match=r"train_loop is 'trainlib\.demo:nothing', but it cannot be loaded"):
        spec_of(trainer={**TRAINER, "train_loop": "trainlib.demo:nothing"}).inspected()
    with pytest.raises(DataNotFoundError, match=r"datasets\['train'\]: there is no data at .*nothing\.csv"):
        spec_of(datasets={"train": str(tmp_path / "nothing.csv")}).inspected()
    with pytest.raises(DataNotFoundError, match="the demo has no demo://cats"):
        spec_of(datasets={"train": "demo://cats"})
    space = {"train_loop_config": {"lr": {"loguniform": [1]}}}
    with pytest.raises(ValueError, match=r"param_space\['train_loop_config'\]\['lr'\] is .* not a valid search space"):
        TuneSpec(train=spec_of(), param_space=space).tuner()


def test_the_settings_of_a_form_are_put_together():
    spec = spec_of(
        num_workers=2,
        name="digits",
        scaling_config={"resources_per_worker": {"CPU": 2}},
        run_config={"experiment_name": "mine"},
        checkpoint_config={"num_to_keep": 3},
        runtime_env={"pip": ["einops"]},
    )
    assert spec.scaling_config == ScalingConfig(num_workers=2, resources_per_worker={"CPU": 2})
    assert type(spec.scaling_config) is ScalingConfig
    assert (spec.run_config.name, spec.run_config.experiment_name) == ("digits", "mine")
    assert type(spec.run_config.checkpoint_config) is CheckpointConfig
    assert spec.run_config.checkpoint_config.num_to_keep == 3
    assert spec.run_config.runtime_env.pip == ["einops"]


def test_a_form_compares_trainers_of_any_kind():
    trees = {"kind": "xgboost", "params": {"objective": "binary:logistic"}, "label_column": "target"}
    on_rows = spec_of(num_workers=2, datasets={"train": "rows.csv"})
    fitted = {"kind": "sklearn", "estimator": "sklearn.linear_model:LogisticRegression", "label_column": "target"}
    spec = TuneSpec(train=on_rows, compare_with=[trees, fitted])
    trainers = spec.tuner().trainers
    assert [type(trainer).__name__ for trainer in trainers] == ["TorchTrainer", "XGBoostTrainer", "SklearnTrainer"]
    assert [trainer.scaling_config.num_workers for trainer in trainers] == [2, 2, 1]
    assert {trainer.scaling_config.total_resources["CPU"] for trainer in trainers} == {2}, "each gets the same"
    assert [form.kind for form in TuneSpec.of(spec.tuner()).parameters()["compare_with"]] == ["xgboost", "sklearn"]


def test_python_passes_the_settings_themselves():
    spec = spec_of(scaling_config=ScalingConfig(num_workers=3), run_config=RunConfig(name="digits", callbacks=[]))
    assert (spec.scaling_config.num_workers, spec.run_config.name, spec.run_config.callbacks) == (3, "digits", [])
    with pytest.raises(InvalidArgumentError, match="num_workers is 2, but num_workers of scaling_config is 3"):
        spec_of(num_workers=2, scaling_config=ScalingConfig(num_workers=3))


def test_an_untouched_section_changes_nothing():
    """Both UIs send a section's default, and each field's default."""
    assert spec_of(scaling_config={}, run_config={}, runtime_env={}).run_config == RunConfig()
    fields = schema_of(train)["definitions"]["FailureSection"]["properties"]
    typed = {name: field["default"] for name, field in fields.items()}
    assert spec_of(failure_config=typed).run_config.failure_config == FailureConfig()


def test_the_parts_of_the_demos_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    spec = preprocess_spec_of("demo://digits", "target", [], forms.SplitSection(), "")
    assert spec.source == str(tmp_path / "demo" / "digits.csv")
    parts = [inspect_source(located(f"demo://digits/{part}")).rows for part in ("train", "validation")]
    assert parts == [1437, 360]


def test_divergence_is_watched_only_where_a_metric_is_named():
    """In Python, to name the settings is enough. A form always has the section."""

    def watched(section: Any) -> Any:
        others = forms.CheckpointSection(), forms.FailureSection(), forms.EnvironmentSection()
        return forms.run_config_of(forms.RunSection.model_validate(section), "", *others).divergence

    assert watched({}) is None
    assert watched({"divergence": {}}) is None
    assert watched({"divergence": {"factor": 5}}) is None
    assert watched({"divergence": {"metric": "loss", "factor": 5}}) == DivergenceConfig(metric="loss", factor=5)
    assert watched(RunConfig(divergence=DivergenceConfig(metric="error"))) == DivergenceConfig(metric="error")
    assert watched(RunConfig(divergence=DivergenceConfig())) == DivergenceConfig()
