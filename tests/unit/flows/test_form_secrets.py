"""Whoever types a secret into a form is told to use a Secret block, before Prefect has stored it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.exceptions import ParameterTypeError
from prefect.utilities.schema_tools.validation import ValidationError, validate
from pydantic import SecretStr

from trainlib._form_secrets import SECRET_KEY, TOKEN_KEY, masked_but_references, plain_secrets
from trainlib._secrets import MASK, is_secret
from trainlib.deployments.serve import deployments
from trainlib.flows import fork, pipeline, predict, preprocess, resume, sweep, train
from trainlib.flows._form_flow import BRING_CODE

SECRET = "correct horse"
BLOCK = "{{ prefect.blocks.secret.warehouse }}"
TRAINER = {"kind": "torch", "train_loop": "trainlib.demo:train_digits"}
GOOD: dict[Any, dict[str, Any]] = {
    train: {"trainer": TRAINER},
    sweep: {"trainer": TRAINER},
    pipeline: {"source": "people.csv", "model_name": "people", "trainer": TRAINER},
    preprocess: {"source": "people.csv"},
    predict: {"model": "models:/people@best", "dataset": "people.csv"},
    resume: {},
    fork: {},
}


def with_config(config: dict[str, Any], **trainer: Any) -> dict[str, Any]:
    return {"trainer": {**TRAINER, **trainer, "train_loop_config": config}}


@pytest.mark.parametrize(
    ("flow", "values", "field"),
    [
        (train, with_config({"db": [{"password": SECRET}]}), "trainer.train_loop_config.db[0].password"),
        (train, with_config({"dbPassword": 1234}, kind="function"), "trainer.train_loop_config.dbPassword"),
        (train, with_config({"HF_TOKEN": SECRET}), "trainer.train_loop_config.HF_TOKEN"),
        (train, with_config({"url": "ftp://ada:horse@host/x"}), "trainer.train_loop_config.url"),
        (train, {"runtime_env": {"env_vars": {"AWS_SECRET_ACCESS_KEY": SECRET}}}, "runtime_env.env_vars.AWS_SECRET_ACCESS_KEY"),
        (train, {"datasets": {"train": "ftp://ada:horse@host/x.csv"}}, "datasets.train"),
        (sweep, {"param_space": {"train_loop_config": {"api_key": {"choice": [SECRET]}}}}, "param_space.train_loop_config.api_key.choice[0]"),
        (pipeline, {"param_space": {"train_loop_config": {"api_key": SECRET}}}, "param_space.train_loop_config.api_key"),
        (pipeline, {"compare_with": [with_config({"password": SECRET})["trainer"]]}, "compare_with[0].train_loop_config.password"),
        (pipeline, {"source": "ftp://ada:horse@host/x.csv"}, "source"),
        (preprocess, {"source": "ftp://ada:horse@host/x.csv"}, "source"),
        (predict, {"dataset": "ftp://ada:horse@host/x.csv"}, "dataset"),
        (resume, {"secrets": {"db.key": SECRET}}, "secrets.db.key"),
        (fork, {"changes": {"db.password": SECRET}}, "changes.db.password"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_a_secret_in_a_form_is_refused_by_the_name_of_its_field(flow, values, field, monkeypatch):
    """By Prefect's server, before there is a run; and by the run, if no server has looked."""
    parameters = {**GOOD[flow], **values}
    with pytest.raises(ValidationError) as refused:
        validate(parameters, flow.parameters.model_dump_for_openapi(), raise_on_error=True)
    named = re.findall(r"for field ['\"](.+)['\"]\. Failure reason: ", str(refused.value))
    assert [name.replace("['", ".").replace("']", "") for name in named] == [field]
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "00000000-0000-0000-0000-000000000000")
    with pytest.raises(ParameterTypeError, match=r"a secret\. Prefect would store it as it is\. Save it as") as refused:
        flow.validate_parameters(parameters)
    assert str(refused.value).startswith(f"{field}: ")
    assert "horse" not in str(refused.value)


def test_a_form_takes_references_to_blocks_and_what_is_no_secret(monkeypatch):
    config = {
        "password": BLOCK,
        "nested": [{"api_key": {"$ref": {"block_document_slug": "secret/warehouse"}}}],
        "url": "ftp://ada:{{prefect.blocks.secret.warehouse}}@host/x",
        "header_token": f"Bearer {BLOCK}",
        "max_tokens": 5,
        "use_password": True,
        "secret": "",
    }
    for flow, values in (
        (train, {**with_config(config), "runtime_env": {"env_vars": {"HF_TOKEN": BLOCK, "NCCL_DEBUG": "INFO"}}}),
        (sweep, {"trainer": TRAINER, "param_space": {"train_loop_config": config}}),
        (fork, {"changes": config}),
        (resume, {"secrets": {"db.key": BLOCK}}),
    ):
        validate({**GOOD[flow], **values}, flow.parameters.model_dump_for_openapi(), raise_on_error=True)
        assert list(plain_secrets(values)) == []
        assert masked_but_references(values) == values


def test_python_passes_secrets_and_prefect_stores_none():
    """In this process, the function gets what was passed. Blocks of Prefect and SecretStr hide themselves."""
    given = {**with_config({"password": SECRET, "api_key": BLOCK, "key": SecretStr(SECRET)}), "num_workers": 1}
    assert train.validate_parameters(given)["trainer"].train_loop_config["password"] == SECRET
    stored = train.serialize_parameters(given)
    assert stored["trainer"]["train_loop_config"]["password"] == MASK
    assert stored["trainer"]["train_loop_config"]["api_key"] == BLOCK
    assert "horse" not in str(stored)
    assert "horse" not in str(resume.serialize_parameters({"secrets": {"db.key": SECRET}}))


def test_parameters_that_are_not_valid_are_printed_without_secrets(caplog):
    with pytest.raises(ParameterTypeError, match="num_workers"):
        train.validate_parameters({**with_config({"password": SECRET}), "num_workers": 0})
    (line,) = [record.getMessage() for record in caplog.records if record.name == "prefect.flows"]
    assert MASK in line
    assert SECRET not in line


def test_a_form_does_not_bring_code_unless_whoever_runs_the_deployment_allows_it(tmp_path, monkeypatch):
    """Else any of these would do what naming a function that is not marked may not."""
    env = {
        "pip": ["einops"],
        "working_dir": str(tmp_path),
        "py_modules": [str(tmp_path)],
        "env_vars": {"PYTHONPATH": "/x"},
    }
    train.validate_parameters({**GOOD[train], "runtime_env": env})  # in Python, whoever calls it runs code anyway
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "00000000-0000-0000-0000-000000000000")
    for name, value in env.items():
        with pytest.raises(ParameterTypeError, match=rf"^runtime_env\.{name}.*does not bring code.*{BRING_CODE}=1"):
            train.validate_parameters({**GOOD[train], "runtime_env": {name: value}})
    train.validate_parameters(
        {**GOOD[train], "runtime_env": {"env_vars": {"NCCL_DEBUG": "INFO"}, "excludes": ["*.csv"]}}
    )
    monkeypatch.setenv(BRING_CODE, "1")
    train.validate_parameters({**GOOD[train], "runtime_env": env})


words = st.sampled_from(
    ["password", "secret", "api", "key", "access", "private", "credential", "token", "tokens", "max", "db", "2"]
)
names = st.lists(words, min_size=1, max_size=4).flatmap(
    lambda found: st.sampled_from(
        ["_".join(found), "-".join(found).upper(), found[0] + "".join(word.capitalize() for word in found[1:]), "".join(found)]
    )
)  # fmt: skip


@given(names)
def test_prefects_server_and_the_flow_agree_on_what_is_a_secret(name):
    assert (re.search(SECRET_KEY, name) is not None) == is_secret(name, 5), name
    by_pattern = re.search(f"{SECRET_KEY}|{TOKEN_KEY}", name) is not None
    assert by_pattern == is_secret(name, "text"), name


@pytest.mark.parametrize("deployment", list(deployments()), ids=lambda deployment: deployment.name)
def test_a_field_that_a_form_does_not_have_is_refused_by_its_name(deployment):
    """By Prefect's server. A run with such a parameter would crash."""
    schema = deployment._parameter_openapi_schema.model_dump(exclude_unset=True)
    validate(deployment.parameters, schema, raise_on_error=True)
    with pytest.raises(ValidationError, match="'epochs' was unexpected"):
        validate({**deployment.parameters, "epochs": 3}, schema, raise_on_error=True)
