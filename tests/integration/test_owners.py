"""A run has one owner at a time, however many processes want it, on a database and on a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.integration.led_by_hand import abandon
from tests.integration.mlflow_server import MlflowServer
from tests.integration.test_runs_in_the_registry import opened
from tests.longest import LONGEST_S
from trainlib._process import Process
from trainlib._registry import opening, ownership, tags
from trainlib._registry.client import connect
from trainlib._registry.ownership import Owner
from trainlib._registry.store import TrackingStore
from trainlib._stacks import stacks_of
from trainlib.errors import RunInUseError, RunLostError, RunNotReachableError

ROUNDS = 12
ELSEWHERE = Process("another-host", 7, "1234", "ffffffff")

# Two of it open the same name in the same instant, again and again: first a new run, then the one that was interrupted.
SCRIPT = """
import json, sys, time
from pathlib import Path
from trainlib import RunConfig
from trainlib._registry.client import connect
from trainlib._registry.opening import open_run
from trainlib._registry.store import TrackingStore
from trainlib.errors import RunInUseError

uri, folder, me, others, rounds = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4].split(","), int(sys.argv[5])
store = TrackingStore(uri)
connect(store)

def meet(point):
    (folder / f"{point}-{me}").touch()
    while not all((folder / f"{point}-{other}").exists() for other in others):
        time.sleep(0.0005)

def opened(name):
    try:
        return open_run(RunConfig(name=name), store=store, default_name="", kind="training", run=None, flow_run_id=None,
                        tags={})
    except RunInUseError as error:
        return error

for number in range(rounds):
    outcomes = []
    for status in ("KILLED", "FINISHED"):
        meet(f"{number}-{status}")
        run = opened(f"name-{number}")
        meet(f"{number}-{status}-opened")
        if isinstance(run, RunInUseError):
            outcomes.append(["lost", str(run)])
        else:
            outcomes.append(["won", run.run_id])
            run.close(status)
        meet(f"{number}-{status}-closed")
    print(json.dumps(outcomes), flush=True)
"""


@pytest.fixture
def server(tmp_path) -> Iterator[str]:
    """An MLflow server."""
    running = MlflowServer(tmp_path, workers=2)
    running.start()
    try:
        yield running.uri
    finally:
        running.kill()


@pytest.mark.parametrize("kind", ["database", "server"])
def test_of_processes_that_open_a_name_in_the_same_instant_one_wins(request, tmp_path, kind):
    uri = request.getfixturevalue("server") if kind == "server" else f"sqlite:///{tmp_path}/mlflow.db"
    connect(TrackingStore(uri))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    members = ["a", "b", "c"]
    started = [
        subprocess.Popen(
            [sys.executable, str(script), uri, str(tmp_path), one, ",".join(members), str(ROUNDS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRAINLIB_HOME": str(tmp_path)},
        )
        for one in members
    ]
    outputs = [process.communicate(timeout=LONGEST_S) for process in started]
    assert [process.returncode for process in started] == [0] * len(members), outputs
    rounds = zip(
        *([json.loads(line) for line in out.splitlines() if line.startswith("[[")] for out, _ in outputs), strict=True
    )
    pids = [str(process.pid) for process in started]
    for number, outcomes in enumerate(rounds):
        begun, continued = zip(*outcomes, strict=True)
        for each in (begun, continued):
            assert sorted(word for word, _ in each) == ["lost", "lost", "won"], (number, each)
            for word, text in each:
                assert word == "won" or any(f"is being run by process {pid} on " in text for pid in pids), text
        (new,), (old,) = ([run_id for word, run_id in each if word == "won"] for each in (begun, continued))
        assert new == old, "the interrupted run goes on"
    client = MlflowClient(uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    left = client.search_runs(experiments)
    assert len(left) == ROUNDS, "those that lost left no run behind"
    assert {run.info.status for run in left} == {"FINISHED"}


@pytest.mark.parametrize("is_claimed_before", [True, False])
def test_a_run_that_a_third_process_keeps_from_its_creator_is_in_nobodys_way(registry, monkeypatch, is_claimed_before):
    """Of three that create a run of one name, the second may have claimed the third's, and not have deleted it yet."""
    name = f"of-three-{is_claimed_before}"
    third, find_running, claim = Process("third-host", 9, "1234", "eeeeeeee"), opening.find_running, opening.claim
    later: list[str] = []

    def find_running_with_a_later_one(client, experiment_id, kind, name):
        held = {tags.KIND: kind, tags.NAME: name, tags.FORMAT: "1", tags.DRIVER: str(ELSEWHERE)}
        created = client.create_run(experiment_id, int(1000 * (time.time() + 60)), held, name)
        later.append(created.info.run_id)
        if is_claimed_before:
            client.log_param(later[0], tags.owner(1), str(third))
        return find_running(client, experiment_id, kind, name)

    def claim_too_late(client, run_id, number):
        if run_id in later and not is_claimed_before:
            client.log_param(run_id, tags.owner(1), str(third))
        return claim(client, run_id, number)

    monkeypatch.setattr(opening, "find_running", find_running_with_a_later_one)
    monkeypatch.setattr(opening, "claim", claim_too_late)
    run = opened(name)
    assert run.run_id not in later
    assert Owner.of(registry.get_run(run.run_id)) == Owner(1, Process.this())
    run.close("FINISHED")


def owned_elsewhere(registry: MlflowClient, name: str) -> str:
    """A run whose owner is on another machine, where no pid can be looked up."""
    run = opened(name)
    abandon(run)
    registry.log_param(run.run_id, tags.owner(2), str(ELSEWHERE))
    registry.set_tag(run.run_id, tags.HEARTBEAT, "2:1")
    return run.run_id


def test_a_run_whose_owner_on_another_machine_is_silent_is_continued(registry, monkeypatch):
    monkeypatch.setattr(ownership, "EXPIRES_S", 2.0)
    monkeypatch.setattr(ownership, "_POLL_S", 0.1)
    run_id = owned_elsewhere(registry, "silent")
    said: list[str] = []
    began = time.monotonic()
    run = opened("silent", say=said.append)
    assert time.monotonic() - began >= 2.0
    assert run.run_id == run_id
    assert Owner.of(registry.get_run(run_id)) == Owner(3, Process.this())
    assert said[0].startswith(
        f"'silent' (MLflow run {run_id}) was being run by process 7 on another-host. Waiting up to "
    )
    run.close("FINISHED")


def test_a_run_whose_owner_on_another_machine_lives_is_not_continued(registry, monkeypatch):
    monkeypatch.setattr(ownership, "EXPIRES_S", 2.0)
    monkeypatch.setattr(ownership, "_POLL_S", 0.1)
    run_id = owned_elsewhere(registry, "lives")

    def beat() -> None:
        time.sleep(1.0)
        registry.set_tag(run_id, tags.HEARTBEAT, "2:2")

    beating = threading.Thread(target=beat)
    beating.start()
    with pytest.raises(RunInUseError, match="is being run by process 7 on another-host"):
        opened("lives")
    beating.join()
    assert Owner.of(registry.get_run(run_id)).number == 2


def test_an_owner_moves_its_counter(registry, monkeypatch):
    monkeypatch.setattr(ownership, "BEAT_S", 0.1)
    run = opened("beats")
    seen = set()
    deadline = time.monotonic() + 20
    while len(seen) < 3:
        assert time.monotonic() < deadline
        seen.add(registry.get_run(run.run_id).data.tags.get(tags.HEARTBEAT))
        time.sleep(0.05)
    run.close("FINISHED")
    assert registry.get_run(run.run_id).data.tags[tags.RELEASED] == "1"


def test_an_owner_that_has_lost_its_run_stops_writing(registry, monkeypatch):
    monkeypatch.setattr(ownership, "BEAT_S", 0.1)
    run = opened("taken-over")
    run.require_owned()
    registry.log_param(run.run_id, tags.owner(2), str(ELSEWHERE))
    deadline = time.monotonic() + 20
    while not run.lease.is_lost:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(RunLostError, match=f"process 7 on another-host has taken over MLflow run {run.run_id}"):
        run.require_owned()
    run.close("FINISHED")
    assert registry.get_run(run.run_id).info.status == "RUNNING", "its end is for the new owner to tell"


def test_the_stacks_of_a_training_on_another_machine_and_no_cluster_that_is_known_are_to_be_read_there(registry):
    run = opened("stacks-elsewhere")
    registry.log_param(run.run_id, tags.owner(2), str(ELSEWHERE))
    with pytest.raises(
        RunNotReachableError,
        match=f"process 7 on another-host.* RAY_ADDRESS .*`ssh another-host trainlib stacks {run.run_id}`",
    ):
        list(stacks_of(run.run_id))
    run.lease.abandon()


def test_an_owner_that_was_suspended_asks_before_it_writes(registry, monkeypatch):
    run = opened("suspended")
    registry.log_param(run.run_id, tags.owner(2), str(ELSEWHERE))
    run.require_owned()  # nothing says so yet
    monkeypatch.setattr(ownership, "EXPIRES_S", 0.0)
    with pytest.raises(RunLostError):
        run.require_owned()
    run.close("FINISHED")


def test_the_start_of_a_process_tells_it_from_a_later_one_of_the_same_pid():
    this = Process.this()
    assert this.is_here
    assert not this.is_gone
    assert Process(this.host, this.pid, "1", this.machine).is_gone
    assert not Process(this.host, this.pid, "1", "another").is_gone, "its pids cannot be seen from here"
    assert Process.parse(f"{this} 0a1b") == this
    assert Path("/proc/self/stat").exists()
