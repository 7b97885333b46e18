"""Whatever is typed into any field of any form: it is taken, or the error names the field. There is never another error.

Prefect's server looks at the form first, then the run of the deployment does, and then the flow makes of it what it is to do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prefect._internal.pydantic.validated_func import ValidatedFunction
from prefect.states import Completed
from prefect.utilities.schema_tools.validation import preprocess_schema, validate

from trainlib import _rooms as rooms
from trainlib._registry.client import connect
from trainlib._registry.store import current_store
from trainlib.errors import TrainlibError
from trainlib.flows import fork, pipeline, predict, preprocess, resume, retention, rollback, sweep, train

TRAINER = {"kind": "torch", "train_loop": "trainlib.demo:train_digits"}
FORMS: dict[Any, dict[str, Any]] = {
    train: {"trainer": TRAINER},
    sweep: {"trainer": TRAINER},
    preprocess: {"source": "people.csv"},
    pipeline: {"source": "people.csv", "model_name": "people", "trainer": TRAINER},
    predict: {"model": "models:/people@best", "dataset": "people.csv"},
    retention: {},
    resume: {"run": "a run"},
    fork: {"source": "a run"},
    rollback: {"model_name": "people"},
}

Path = tuple[str | int, ...]

texts = ["", " ", "..", "\0", "-1", "1e999", "subprocess:Popen", "s3://key:word@bucket", "{{ x }}", "x" * 1000, "a//b"]
typed = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(texts) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(texts), inner, max_size=3),
    max_leaves=5,
)


@cache
def schema_of(flow: Any) -> dict[str, Any]:
    return preprocess_schema(flow.parameters.model_dump_for_openapi())


@cache
def validated(flow: Any) -> ValidatedFunction:
    """What Prefect's engine makes for each run."""
    return ValidatedFunction(flow.fn, config=pydantic.ConfigDict(arbitrary_types_allowed=True))


def fields_of(flow: Any, seen: set[str]) -> Iterator[Path]:
    """The paths of all fields of a form. Sections that several forms have are listed once."""

    def within(schema: dict[str, Any], path: Path) -> Iterator[Path]:
        if (name := schema.get("$ref", "").rpartition("/")[2]) and name != "PreprocessedDataset":
            if name not in seen:
                seen.add(name)
                yield from within(schema_of(flow)["definitions"][name], path)
            return
        for choice in schema.get("anyOf", []):
            kind = schema_of(flow)["definitions"].get(choice.get("$ref", "").rpartition("/")[2], {})
            (chosen,) = kind.get("properties", {}).get("kind", {}).get("enum", [""])
            yield from within(choice, (*path, f"kind={chosen}") if chosen else path)
        if "$ref" in schema.get("items", {}):
            yield from within(schema["items"], (*path, 0))
        for name, field in schema.get("properties", {}).items():
            yield (*path, name)
            yield from within(field, (*path, name))

    yield from within(flow.parameters.model_dump_for_openapi(), ())


SEEN: set[str] = set()
FIELDS = [(flow, path) for flow in FORMS for path in fields_of(flow, SEEN)]


def with_value(parameters: Any, path: Path, value: Any) -> Any:
    """The parameters with a value put in at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(first, int):
        return [with_value({"name": "StandardScaler"}, tuple(rest), value)]
    if first.startswith("kind="):
        return with_value({"kind": first[5:], "train_loop": "trainlib.demo:train_digits"}, tuple(rest), value)
    inner = parameters if isinstance(parameters, dict) else {}
    return {**inner, first: with_value(inner.get(first), tuple(rest), value)}


@pytest.fixture(scope="module")
def nothing_starts(tmp_path_factory) -> Iterator[None]:
    """Flows do everything but their work, in a home with one registered model and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINLIB_HOME", str(tmp_path_factory.mktemp("home")))
        for flow in FORMS:
            module = sys.modules[flow.fn.__module__]
            patch.setattr(module, "outliving_prefect", lambda work: work())
            for work in (
                "train_here",
                "sweep_here",
                "_pipeline",
                "preprocess_task",
                "predict_task",
                "prune",
                "demo_model",
                "show",
            ):
                if hasattr(module, work):
                    patch.setattr(module, work, lambda *given, **named: Completed())
        store = current_store()
        with store.in_use():
            connect(store).create_registered_model("people")
        yield


def is_named(path: Path, said: str) -> bool:
    """Whether an error names the field, or at least the section that it is in, if two fields do not go together."""
    names = [str(part) for part in path if not str(part).startswith("kind=")]
    return names[-1] in said or (len(names) > 1 and names[0] in said)


def said_of(flow: Any, parameters: dict[str, Any]) -> str:
    """What a flow says about its parameters. Any other error is one of ours."""
    try:
        flow.fn(**validated(flow).validate_call_args((), parameters))
    except (TrainlibError, ValueError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("flow", "path"), FIELDS, ids=lambda value: getattr(value, "name", None) or ".".join(map(str, value))
)
@given(value=typed)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_field_of_a_form_takes_a_value_or_is_named(nothing_starts, flow, path, value):
    parameters = with_value(FORMS[flow], path, value)
    errors = validate(parameters, schema_of(flow), preprocess=False)
    assert all(path[0] in f"{error.json_path} {error.message}" for error in errors)
    try:
        accepted = validated(flow).validate_call_args((), parameters)
    except pydantic.ValidationError as error:
        said = str(error)
        assert is_named(path, said), said
        return
    said = said_of(flow, accepted)
    assert not said or is_named(path, said) or said == said_of(flow, FORMS[flow])


def test_all_forms_are_here_with_all_kinds_of_trainers():
    from trainlib.deployments.listed import flow_names

    assert sorted(flow.name for flow in FORMS) == flow_names()
    kinds = {part for _, path in FIELDS for part in path if str(part).startswith("kind=")}
    assert kinds == {f"kind={name}" for name in rooms.choices()}
