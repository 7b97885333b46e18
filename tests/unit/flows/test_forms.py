"""Every field of every form: whatever is typed in, it is accepted, or the error names the field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from trainlib import CheckpointConfig, DataConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib._data.spec import PreprocessSpec, SplitSpec, StepSpec
from trainlib.flows.pipeline_spec import PipelineSpec
from trainlib.flows.spec import TrainSpec
from trainlib.flows.tune_spec import TuneSpec
from trainlib.tune import TuneConfig

TRAIN = {"trainer": {"kind": "torch", "train_loop": "trainlib.demo:train_digits"}}
# What each form needs besides the field that is tried.
FORMS: dict[type[BaseModel], dict[str, Any]] = {
    ScalingConfig: {},
    RunConfig: {},
    CheckpointConfig: {},
    FailureConfig: {},
    DataConfig: {},
    TrainSpec: TRAIN,
    TuneConfig: {},
    TuneSpec: {"train": TRAIN},
    SplitSpec: {},
    StepSpec: {"name": "StandardScaler"},
    PreprocessSpec: {"source": "people.csv"},
    PipelineSpec: {"data": {"source": "people.csv"}, "train": TRAIN, "model_name": "digits"},
}
FIELDS = [(form, name) for form in FORMS for name in form.model_fields]

# What a form can send, with what people mistype more often than not.
typed = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["", " ", "..", "\0", "-1", "1e999", "subprocess:Popen", "s3://key:word@bucket", "x" * 1000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(("form", "field"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
@given(value=typed)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_field_takes_a_value_or_is_named(form, field, value):
    refused = None
    try:
        form(**{**FORMS[form], field: value})
    except ValidationError as error:
        refused = str(error)
    assert refused is None or field in refused


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (RunConfig, {"storage_path": "s3://key:hunter2@bucket"}),
        (TrainSpec, {"run_config": {"storage_path": "s3://key:hunter2@bucket"}}),
        (TrainSpec, {"trainer": {**TRAIN["trainer"], "train_loop_config": "s3://key:hunter2@bucket"}}),
        (TuneSpec, {"train": {**TRAIN, "run_config": {"storage_path": "s3://key:hunter2@bucket"}}}),
        (PreprocessSpec, {"source": "ftp://key:hunter2@host/people.csv"}),
        (PipelineSpec, {"data": {"source": "people.csv", "storage_path": "s3://key:hunter2@bucket"}}),
    ],
)
def test_an_error_does_not_show_a_password(form, values):
    with pytest.raises(ValidationError) as refused:
        form(**{**FORMS[form], **values})
    assert "hunter2" not in str(refused.value)
