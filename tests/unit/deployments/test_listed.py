"""The list of deployments: what `prefect deploy` and `trainlib up` both read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.schema_tools.validation import validate

from trainlib.deployments.listed import FILE, WORK_POOL, flow_names, listed
from trainlib.deployments.serve import deployments

ROOT = Path(__file__).parents[3]
LISTED = list(listed())


@pytest.mark.parametrize("each", LISTED, ids=lambda each: each.name)
def test_a_deployment_is_of_a_flow_with_values_that_its_form_takes(each):
    flow = load_flow_from_entrypoint(each.entrypoint, use_placeholder_flow=False)
    assert ":" not in each.entrypoint, "a module path, not a file: it holds on every machine"
    assert "trainlib" in each.tags
    validate(each.parameters, flow.parameters.model_dump_for_openapi(), raise_on_error=True)
    flow.validate_parameters(each.parameters)


def test_the_flows_that_are_watched_for_crashes_are_those_of_the_list():
    names = {load_flow_from_entrypoint(each.entrypoint, use_placeholder_flow=False).name for each in LISTED}
    assert flow_names() == sorted(names)


def test_names_are_unique():
    names = [each.name for each in LISTED]
    assert {"train", "sweep", "preprocess", "pipeline"} <= set(names)
    assert len(set(names)) == len(names)


def test_both_readers_find_the_same():
    served = {each.name: each for each in deployments()}
    assert list(served) == [each.name for each in LISTED]
    for each in LISTED:
        assert served[each.name].parameters == each.parameters
        assert served[each.name].tags == each.tags
        assert served[each.name].description
        assert len(served[each.name].schedules or []) == len(each.schedules)


def test_workers_need_nothing_but_trainlib():
    whole = yaml.safe_load(FILE.read_text())
    assert whole["pull"] == [], "nothing is fetched"
    assert {each["work_pool"]["name"] for each in whole["deployments"]} == {WORK_POOL}


def test_the_list_is_installed_with_the_package():
    assert FILE.is_file()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert FILE.name in settings["trainlib.deployments"]
