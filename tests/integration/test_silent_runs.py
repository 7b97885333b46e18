"""Scripts whose machine was switched off are marked as crashed, once a platform is up again."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.states import Running

from trainlib.deployments.automations import HEARTBEAT
from trainlib.deployments.interrupted import last_heartbeat, mark_silent_runs
from trainlib.flows import _embedded as embedded


@flow(name="train")
def train() -> None:
    """Called as ours is, and never run."""


def begun(client: SyncPrefectClient, *heartbeats: datetime) -> uuid.UUID:
    """A run that has told at such times that it lives."""
    run = client.create_flow_run(train, state=Running())
    events = [
        {
            "id": str(uuid.uuid4()),
            "occurred": each.isoformat(),
            "event": HEARTBEAT,
            "resource": {"prefect.resource.id": f"prefect.flow-run.{run.id}"},
        }
        for each in heartbeats
    ]
    client._client.post("/events", json=events).raise_for_status()
    return run.id


def wait_until_known(client: SyncPrefectClient, run: uuid.UUID, heartbeat: datetime) -> None:
    deadline = time.monotonic() + 30
    while last_heartbeat(client, run) != heartbeat:  # the server writes events down every few seconds
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_script_that_was_heard_before_and_not_since_has_crashed():
    embedded.start()
    embedded.wait()
    since = datetime.now(UTC) - timedelta(minutes=2)
    before, after = since - timedelta(hours=2), since + timedelta(minutes=1)
    with get_client(sync_client=True) as client:
        gone = begun(client, before - timedelta(hours=1), before)
        alive = begun(client, before, after)
        tells_nothing = begun(client)  # it may live: heartbeats are a setting of Prefect's
        wait_until_known(client, gone, before)
        wait_until_known(client, alive, after)
        mark_silent_runs(since)
        states = {run: client.read_flow_run(run).state for run in (gone, alive, tells_nothing)}
    assert states[gone].name == "Crashed"
    assert f"{before:%H:%M:%S} UTC" in states[gone].message
    assert [states[alive].name, states[tells_nothing].name] == ["Running", "Running"]
