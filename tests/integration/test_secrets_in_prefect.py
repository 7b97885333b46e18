"""Secret blocks of Prefect: their values reach the training function, and are stored nowhere in clear."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.flow_engine import run_flow

from trainlib import DataParallelTrainer, Result, RunConfig, session, trainable
from trainlib._secrets import MASK, SecretText
from trainlib.deployments.serve import deployments
from trainlib.errors import InvalidArgumentError
from trainlib.flows import TrainSpec, train
from trainlib.flows import _embedded as embedded

VALUE = "correct horse battery staple"


@trainable
def train_func(config: dict[str, Any]) -> list[str]:
    """Gives what it got, spelled backwards: the tests look for the value itself in everything that is stored."""
    session.report({"loss": 1.0})
    return [(given if isinstance(given, str) else given.get())[::-1] for given in config.values()]


@pytest.fixture(scope="module")
def block() -> Secret:
    """One that is saved as ``warehouse``."""
    embedded.start()
    embedded.wait()
    Secret(value=VALUE).save("warehouse", overwrite=True)
    return Secret.load("warehouse")


@pytest.fixture
def assert_stored_nowhere(registry, home) -> Callable[[Result], None]:
    """Looks into all files that were written since: the databases of MLflow and Prefect, artifacts, settings and logs."""
    began = time.time()

    def check(result: Result) -> None:
        assert registry.get_run(result.run_id).data.params["warehouse"] == MASK
        with get_client(sync_client=True) as client:
            assert VALUE not in json.dumps(client.read_flow_run(UUID(result.flow_run_id)).parameters)
        files = [file for file in home.rglob("*") if file.is_file() and file.stat().st_mtime >= began - 1]
        assert {"settings.pkl", "mlflow.db"} <= {file.name for file in files}
        assert [file for file in files if VALUE.encode() in file.read_bytes()] == []

    return check


def test_a_form_refers_to_a_block(block, assert_stored_nowhere):
    """As a template, the way Prefect's own settings refer to blocks, and as the reference that Prefect resolves in forms."""
    trainer = {
        "kind": "function",
        "train_loop": f"{__name__}:train_func",
        "train_loop_config": {
            "warehouse": "{{ prefect.blocks.secret.warehouse }}",
            "url": "https://example.org/{{prefect.blocks.secret.warehouse}}",
            "again": {"$ref": {"block_document_slug": "secret/warehouse"}},
        },
    }
    with get_client(sync_client=True) as client:
        flow_run = client.create_flow_run(train, parameters={"trainer": trainer})
    result = run_flow(train, flow_run=flow_run)
    assert result.returned == [[VALUE[::-1], f"https://example.org/{VALUE}"[::-1], VALUE[::-1]]]
    assert_stored_nowhere(result)


def test_a_form_that_refers_to_a_block_that_does_not_exist(block):
    config = {"db": [{"pw": "{{ prefect.blocks.secret.no-such }}"}]}
    spec = TrainSpec(trainer={"kind": "torch", "train_loop": f"{__name__}:train_func", "train_loop_config": config})
    with pytest.raises(InvalidArgumentError, match=r"^train_loop_config\['db'\]\[0\]\['pw'\] refers to .* 'no-such'"):
        spec.build()


def test_a_script_passes_a_block(block, assert_stored_nowhere):
    result = DataParallelTrainer(
        train_func, train_loop_config={"warehouse": block}, run_config=RunConfig(verbose=0)
    ).fit()
    assert result.returned == [[VALUE[::-1]]]
    assert_stored_nowhere(result)


def test_a_deployment_refuses_a_secret_before_it_is_stored_and_a_field_that_it_does_not_have(block, home):
    """Prefect's own server does, by the name of the field; and it takes references."""
    deployment = next(each for each in deployments() if each.name == "train")
    deployment_id = deployment.apply()
    form = {"kind": "function", "train_loop": f"{__name__}:train_func"}
    typed = VALUE[::-1]  # which no other test has stored

    def submit(parameters: dict[str, Any]) -> Any:
        with get_client(sync_client=True) as client:
            return client.create_flow_run_from_deployment(deployment_id, parameters=parameters)

    refused = [
        (
            {"trainer": {**form, "train_loop_config": {"db": {"password": typed}}}},
            "trainer.train_loop_config.db.password",
        ),
        ({"trainer": form, "runtime_env": {"env_vars": {"HF_TOKEN": typed}}}, "runtime_env.env_vars.HF_TOKEN"),
        ({"trainer": form, "epochs": 3}, "'epochs' was unexpected"),
    ]
    try:
        for parameters, field in refused:
            with pytest.raises(PrefectHTTPStatusError) as error:
                submit(parameters)
            assert error.value.response.status_code == 409
            assert field in error.value.response.json()["detail"]
        by_reference = {"password": "{{ prefect.blocks.secret.warehouse }}"}
        taken = submit({"trainer": {**form, "train_loop_config": by_reference}})
        assert taken.parameters["trainer"]["train_loop_config"] == by_reference
    finally:
        with get_client(sync_client=True) as client:
            client.delete_deployment(deployment_id)
    databases = [file for file in home.rglob("prefect.db*") if file.is_file()]
    assert databases
    assert [file for file in databases if typed.encode() in file.read_bytes()] == []
    assert {stat.S_IMODE(file.stat().st_mode) for file in databases if not file.name.endswith(".lock")} == {0o600}


def test_python_passes_a_secret_to_a_flow(block, assert_stored_nowhere):
    """As a dict, like a form: Prefect stores the mask, and the function gets the secret."""
    config = {"warehouse": SecretText(VALUE), "password": VALUE}
    form = {"kind": "function", "train_loop": f"{__name__}:train_func", "train_loop_config": config}
    result = train(trainer=form, run_config=RunConfig(verbose=0))
    assert result.returned == [[VALUE[::-1], VALUE[::-1]]]
    assert_stored_nowhere(result)
