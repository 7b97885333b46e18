"""`prefect deploy --all`, and what a real server makes of a form."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL

from tests.longest import LONGEST_S
from trainlib.deployments.listed import FILE, WORK_POOL, listed
from trainlib.deployments.work_pool import ensure_work_pool
from trainlib.flows import _embedded as embedded

DEPLOY = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(FILE)]


@pytest.fixture(scope="module")
def client() -> Iterator[SyncPrefectClient]:
    """Of a server to which everything was deployed, from a folder that has nothing to do with it."""
    embedded.start()
    embedded.wait()
    ensure_work_pool()
    ensure_work_pool()  # one that is there stays
    with get_client(sync_client=True) as client:
        environment = {**os.environ, "PREFECT_API_URL": str(PREFECT_API_URL.value())}
        done = subprocess.run(
            DEPLOY, cwd="/", env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield client
        for each in deployed(client).values():
            client._client.delete(f"/deployments/{each.id}")


def deployed(client: SyncPrefectClient) -> dict[str, Any]:
    return {each.name: each for each in client.read_deployments() if each.work_pool_name == WORK_POOL}


def test_prefect_deploys_the_list_as_it_is(client):
    found = deployed(client)
    wanted = {each.name: each for each in listed()}
    assert found.keys() == wanted.keys()
    for name, each in wanted.items():
        assert found[name].entrypoint == each.entrypoint
        assert found[name].parameters == each.parameters
        assert set(found[name].tags) == set(each.tags)
        assert not found[name].pull_steps, "workers import what is installed"
        assert found[name].enforce_parameter_schema
        assert len(found[name].schedules) == len(each.schedules)


@pytest.mark.parametrize(
    ("name", "values", "field"),
    [
        ("train", {"num_workers": 0}, "num_workers"),
        ("train", {"num_workers": "two"}, "num_workers"),
        ("train", {"scaling_config": {"placement_strategy": "NEAR"}}, "scaling_config.placement_strategy"),
        ("train", {"trainer": {"kind": "jax"}}, "trainer"),
        ("sweep", {"mode": "most"}, "mode"),
        ("preprocess", {"split": {"by": "magic"}}, "split.by"),
    ],
)
def test_a_server_refuses_a_bad_value_by_its_field(client, name, values, field):
    with pytest.raises(PrefectHTTPStatusError) as refused:
        client.create_flow_run_from_deployment(deployed(client)[name].id, parameters=values)
    assert refused.value.response.status_code == 409
    assert f"Validation failed for field '{field}'" in refused.value.response.json()["detail"]


@pytest.mark.parametrize("name", ["train", "sweep", "preprocess"])
def test_a_server_takes_an_untouched_form(client, name):
    run = client.create_flow_run_from_deployment(deployed(client)[name].id)
    client.delete_flow_run(run.id)
