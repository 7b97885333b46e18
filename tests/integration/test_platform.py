"""``trainlib up``: one platform, whom it answers, scripts that join it, runs that crash, and nothing that is left of it."""

from __future__ import annotations

import base64
import json
import signal
import textwrap
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.states import Paused, Running, Suspended
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as open_websocket

from tests.integration.conftest import Driver, drivers
from tests.integration.test_listening import listening
from tests.platforms import Up, platform_of, wait_for
from trainlib._execution import cluster
from trainlib._platform import commands, record
from trainlib._platform.status import ServiceState
from trainlib._registry import tags
from trainlib._registry.early_client import EarlyClient, log_notes
from trainlib._registry.store import default_store
from trainlib.deployments.automations import RESTART_TAG, SILENCE, ensure_automations
from trainlib.deployments.interrupted import mark_interrupted_runs
from trainlib.deployments.listed import listed

# A module of the user's that deployments can train.
SLOWLY = """
import os, time
import trainlib
from trainlib import Checkpoint, session

@trainlib.trainable
def train(config):
    found = session.get_checkpoint()
    step = found.to_dict()["step"] + 1 if found else 0
    while step < config["steps"] or not os.path.exists(config["until"]):
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))
        time.sleep(0.2)
        step += 1
"""
SCRIPT = """
import json, sys
import slowly
from trainlib import DataParallelTrainer, RunConfig, ScalingConfig

name, until = sys.argv[1:]
result = DataParallelTrainer(
    slowly.train,
    train_loop_config={"steps": 1, "until": until},
    scaling_config=ScalingConfig(num_workers=1),
    run_config=RunConfig(name=name),
).fit()
print(json.dumps({"run_url": result.run_url, "run_id": result.run_id, "flow_run_id": result.flow_run_id}))
"""
# The same for a function that is over at once. It tells which thread has imported MLflow.
QUICK = """
import json, sys, threading

class Watch:
    imported_in = None

    def find_spec(self, name, path, target=None):
        if name == "mlflow":
            Watch.imported_in = threading.current_thread().name

sys.meta_path.insert(0, Watch())
from trainlib import DataParallelTrainer

result = DataParallelTrainer(lambda config: None, train_loop_config={"lr": 0.1}).fit()
print(json.dumps({"run_id": result.run_id, "imported_in": Watch.imported_in}))
"""
# A flow of the user's, on the server that a training would use.
FLOW = """
import time
from prefect import flow
from trainlib.flows import _embedded as embedded

embedded.start()

@flow(name="preprocess")  # flows of other names may be silent for longer
def silent():
    print("running", flush=True)
    time.sleep(600)

silent()
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory) -> Iterator[Up]:
    """One platform for this module; two are started at the same instant."""
    cluster.connect()  # the session's own Ray, before there is a platform whose Ray would be joined
    home = tmp_path_factory.mktemp("platform")
    (home / "slowly.py").write_text(textwrap.dedent(SLOWLY))
    with platform_of(home, auth=True) as up:
        up.start(), up.start()
        up.wait_until_up()
        yield up


@contextmanager
def prefect_client() -> Iterator[SyncPrefectClient]:
    """A client of the platform's server, as a script is that joins."""
    from trainlib._platform.joining import prefect_settings

    settings = prefect_settings(record.running())
    with (
        temporary_settings(
            {
                PREFECT_API_URL: settings["PREFECT_API_URL"],
                PREFECT_API_AUTH_STRING: settings.get("PREFECT_API_AUTH_STRING"),
            }
        ),
        get_client(sync_client=True) as client,
    ):
        yield client


@contextmanager
def mlflow_client() -> Iterator[MlflowClient]:
    store = default_store()
    with store.in_use():
        yield MlflowClient(store.uri)


def steps(run_id: str) -> list[int]:
    with mlflow_client() as client:
        return [int(point.value) for point in client.get_metric_history(run_id, "step")]


def test_of_two_at_the_same_instant_one_wins_and_all_of_it_is_up(up):
    platform = record.running()
    wait_for(lambda: any(each.poll() is not None for each in up.started))
    (winner,) = (each for each in up.started if each.poll() is None)
    (other,) = (each for each in up.started if each is not winner)
    assert other.returncode == 0
    assert "is up already" in up.output(other)
    assert f":{winner.pid}:" in platform.process
    for said in (platform.prefect, platform.mlflow, platform.ray, "Ctrl-C ends it."):
        assert said in up.output(winner)
    found = {each.name: each.state for each in commands.status()}
    assert found == dict.fromkeys(("prefect", "mlflow", "ray", "deployments"), ServiceState.UP)
    assert {"prefect", "mlflow", "ray", "deployments"} <= commands.log_files().keys()
    with urllib.request.urlopen(f"{platform.prefect}/ui-settings") as answer:
        assert json.load(answer)["api_url"] == platform.prefect_api, "its pages ask the right server"
    beyond = [
        (process.name(), address)
        for process in psutil.Process(winner.pid).children(recursive=True)
        for address in listening(process)
        if address not in ("127.0.0.1", "::1")
    ]
    assert beyond == []


def test_another_home_is_told_who_has_its_port(up, tmp_path, monkeypatch):
    pid = record.running().pids["prefect"]
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    with pytest.raises(OSError, match=rf"port {up.ports[0]} is taken by process {pid} .*--prefect-port"):
        commands.up(prefect_port=up.ports[0], mlflow_port=up.ports[1], detach=False, auth=False)


def status_of(url: str, **headers: str) -> int:
    """The status of the answer to a request that reads something."""
    request = urllib.request.Request(url, b'{"max_results": 1}', {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def login() -> dict[str, str]:
    from trainlib._platform import access

    return {"Authorization": "Basic " + base64.b64encode(f"admin:{access.password()}".encode()).decode()}


@pytest.fixture(params=["prefect", "mlflow"])
def question(request, up) -> str:
    """A request to one of the servers that has an answer."""
    platform = record.running()
    return {
        "prefect": f"{platform.prefect_api}/flows/count",
        "mlflow": f"{platform.mlflow}/api/2.0/mlflow/experiments/search",
    }[request.param]


def test_pages_of_others_get_no_answer(question):
    port = question.split(":")[2].partition("/")[0]
    assert status_of(question, **login()) == 200
    assert status_of(question, **login(), Origin=f"http://localhost:{port}") == 200
    for headers in (
        {"Host": f"evil.example:{port}"},
        {"Host": f"10.evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        assert status_of(question, **login(), **headers) == 403, headers


def test_who_does_not_know_the_password_gets_no_answer(question):
    wrong = "Basic " + base64.b64encode(b"admin:password").decode()
    assert status_of(question) == 401
    assert status_of(question, Authorization=wrong) == 401


def test_a_websocket_of_a_foreign_page_is_refused(up):
    url = record.running().prefect_api.replace("http", "ws") + "/events/in"
    with pytest.raises(InvalidStatus) as refused:
        open_websocket(url, origin="http://evil.example")
    assert refused.value.response.status_code == 403


def test_deployments_and_automations_are_there_once(up):
    with prefect_client() as client:
        found = {each.name: each for each in client.read_deployments()}
        assert sorted(found) == sorted(each.name for each in listed())
        assert all("trainlib" in each.tags and each.description for each in found.values())
        assert RESTART_TAG in found["train"].tags
        ensure_automations()
        automations = client.read_automations()
        assert len(automations) == 2
        assert {each.trigger.within for each in automations} == {SILENCE, timedelta(0)}


@dataclass(frozen=True)
class Survivor:
    """A training that joins the first platform, and goes on until it may end."""

    script: Driver
    may_end: Path


@pytest.fixture(scope="module")
def survivor(up, tmp_path_factory) -> Iterator[Survivor]:
    folder = tmp_path_factory.mktemp("survivor")
    may_end = folder / "may-end"
    with drivers(folder) as driver:
        yield Survivor(driver(SCRIPT, "survivor", str(may_end), own_server=True, **script_environment(up)), may_end)


def test_a_run_that_ended_with_the_platform_before_is_crashed_when_the_next_one_starts(up):
    with prefect_client() as client:
        (served,) = (each for each in client.read_deployments() if each.name == "preprocess")
        states = (Running(), Paused(timeout_seconds=600), Suspended(timeout_seconds=600))
        given = {"source": "people.csv"}
        runs = [client.create_flow_run_from_deployment(served.id, parameters=given, state=Running()).id for _ in states]
        for run, state in zip(runs, states, strict=True):
            client.set_flow_run_state(run, state, force=True)
        mark_interrupted_runs()
        assert [client.read_flow_run(run).state.name for run in runs] == ["Crashed", "Crashed", "Suspended"]
        for run in runs:
            client.delete_flow_run(run)


def test_a_run_whose_process_is_gone_is_crashed_and_is_run_again_where_its_deployment_says_so(
    up, driver, survivor, tmp_path
):
    """One of a script, which nobody watches but the server, and one of a deployment."""
    with prefect_client() as client:
        ensure_automations(timedelta(seconds=10))  # the shortest that Prefect takes
        silent = driver(FLOW, own_server=True, **script_environment(up))
        trainer = {
            "kind": "function",
            "train_loop": "slowly:train",
            "train_loop_config": {"steps": 8, "until": str(tmp_path)},
        }
        parameters = {"trainer": trainer, "num_workers": 1, "name": "again"}
        deployed = run_deployment("train/train", parameters=parameters, timeout=0, as_subflow=False)
        silent.wait_for(lambda: "running" in silent.output)
        flow = client.read_flow_by_name("preprocess")
        (run,) = (each for each in client.read_flow_runs() if each.flow_id == flow.id)
        wait_for(lambda: has_heartbeat(client, run.id))
        silent.process.kill()
        (recorded,) = wait_for_runs("again")
        wait_for(lambda: steps(recorded))
        engine(deployed.id).kill()
        wait_for(lambda: client.read_flow_run(run.id).state.name == "Crashed")
        assert "told nothing for 10 s" in client.read_flow_run(run.id).state.message
        wait_for(lambda: client.read_flow_run(deployed.id).state.name == "Completed")
        assert client.read_flow_run(deployed.id).run_count == 2
        ensure_automations()
    assert steps(recorded) == list(range(8)), "it went on where it was"


def has_heartbeat(client: SyncPrefectClient, flow_run_id: UUID) -> bool:
    """Whether the server has heard that a run lives. Of one that is killed before, it cannot know that it has crashed."""
    asked = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}, "order": "DESC"}}
    events = client._client.post("/events/filter", json=asked).json()["events"]
    return any(str(flow_run_id) in each["resource"]["prefect.resource.id"] for each in events)


def engine(flow_run_id: UUID) -> psutil.Process:
    """The process of a deployment's run."""
    runner = psutil.Process(record.running().pids["deployments"])
    (found,) = (
        each for each in runner.children() if str(flow_run_id) in each.environ().get("PREFECT__FLOW_RUN_ID", "")
    )
    return found


def wait_for_runs(name: str) -> list[str]:
    found: list[str] = []

    def find() -> bool:
        with mlflow_client() as client:
            experiments = [each.experiment_id for each in client.search_experiments()]
            runs = client.search_runs(experiments, f"attributes.run_name = '{name}'")
            found[:] = [each.info.run_id for each in runs]
        return bool(found)

    wait_for(find)
    return found


def script_environment(up: Up) -> dict[str, str]:
    """A script in the platform's home. Its Ray is the session's, since the environment says so."""
    return {name: up.environment[name] for name in ("TRAINLIB_HOME", "PREFECT_HOME", "PYTHONPATH")}


def test_a_script_that_joins_begins_its_run_before_mlflow_is_imported(up, survivor, driver):
    survivor.script.wait_for(lambda: "training" in survivor.script.output)  # so there is an experiment
    script = driver(QUICK, own_server=True, **script_environment(up))
    assert script.wait() == 0, script.output
    said = script.last_json()
    assert said["imported_in"] == "mlflow-import"
    with mlflow_client() as client:
        run = client.get_run(said["run_id"])
    assert run.info.status == "FINISHED"
    assert run.data.params.items() >= {"lr": "0.1", "num_workers": "1"}.items()
    assert run.data.tags.keys() >= {tags.KIND, tags.FRAMEWORK, tags.DRIVER, tags.FLOW_RUN_ID}


def test_a_run_that_is_begun_early_is_as_mlflow_itself_would_have_begun_it(up):
    store, now = default_store(), 1_700_000_000_000
    with mlflow_client() as client:
        experiment = client.create_experiment("begun early")
        early = EarlyClient(store)
        assert early.get_experiment_by_name("begun early").experiment_id == experiment
        assert early.get_experiment_by_name("no such experiment") is None
        assert early.search_runs([experiment], "") == []
        runs = [
            each.create_run(experiment, now, {"a": "Ä · 'b'", tags.MLFLOW_USER: "ada"}, "some name")
            for each in (client, early)
        ]
        for each, run in zip((client, early), runs, strict=True):
            log_notes(each, run.info.run_id, params={"lr": "0.1"}, tags={"c": "d"})
        first, second = (client.get_run(run.info.run_id) for run in runs)
        assert runs[1].info.artifact_uri == second.info.artifact_uri
        assert first.data.to_dictionary() == second.data.to_dictionary()
        for known in ("run_name", "start_time", "status", "user_id", "lifecycle_stage"):
            assert getattr(first.info, known) == getattr(second.info, known)
        assert {run.info.run_id for run in early.search_runs([experiment])} == {run.info.run_id for run in runs}


def test_what_the_server_refuses_early_is_mlflows_own_error(up):
    store = default_store()
    with mlflow_client():
        early = EarlyClient(store)
        with pytest.raises(MlflowException, match="No Experiment with id=4711"):
            early.create_run("4711", 0, {}, "a run")
        with pytest.raises(MlflowException, match="not found"):
            log_notes(early, "0" * 32, tags={"a": "b"})


def test_the_nightly_run_is_scheduled(up):
    with prefect_client() as client:
        nightly = client.read_deployment_by_name("pipeline/nightly")
        filters = {"deployment_filter": DeploymentFilter(id=DeploymentFilterId(any_=[nightly.id]))}
        wait_for(lambda: client.read_flow_runs(**filters))
        assert {run.state.name for run in client.read_flow_runs(**filters)} == {"Scheduled"}


def test_nothing_is_left_of_a_killed_platform_and_a_training_goes_on_with_the_next(up, survivor):
    platform, script = record.running(), survivor.script
    script.wait_for(lambda: "iteration" in script.output)
    joined = f"joining the platform of {up.home}: Prefect {platform.prefect}, MLflow {platform.mlflow}"
    assert joined in script.output.splitlines(), "and no Ray: RAY_ADDRESS is set"

    supervisor = up.supervisor
    below = psutil.Process(supervisor.pid).children(recursive=True)
    assert len(below) > 10
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    assert record.running() is None
    assert commands.status() == []
    up.start()  # at once: it waits until the ports are free
    _, left = psutil.wait_procs(below, timeout=20)
    assert left == []

    again = up.wait_until_up()
    assert (again.prefect, again.mlflow) == (platform.prefect, platform.mlflow)
    survivor.may_end.touch()
    assert script.wait() == 0, script.output
    said = json.loads(script.output.strip().splitlines()[-1])
    assert said["run_url"].startswith(f"{platform.mlflow}/#/experiments/")
    recorded = steps(said["run_id"])
    assert recorded == list(range(len(recorded)))
    with prefect_client() as client:
        assert client.read_flow_run(UUID(said["flow_run_id"])).state.name == "Completed"
    with mlflow_client() as client:
        tags = client.get_run(said["run_id"]).data.tags
    assert tags["prefect.flow_run_url"] == f"{platform.prefect}/runs/flow-run/{said['flow_run_id']}"


def test_down_leaves_nothing(up):
    below = psutil.Process(up.supervisor.pid).children(recursive=True)
    assert commands.down() is True
    assert [each for each in below if each.is_running()] == []
    assert commands.status() == []
    assert commands.down() is False
