"""How long it takes until a run is Crashed whose machine was switched off: with the times that users have, about 95 s."""

from __future__ import annotations

import time

from tests.integration.conftest import drivers
from tests.integration.test_platform import (
    FLOW,
    has_heartbeat,
    prefect_client,
    script_environment,
    up,  # noqa: F401 (the fixture)
    wait_for,
)


def test_a_run_is_crashed_within_two_minutes(up, tmp_path):  # noqa: F811
    with drivers(tmp_path) as driver, prefect_client() as client:
        script = driver(FLOW, own_server=True, own_ray=True, **script_environment(up))
        script.wait_for(lambda: "running" in script.output)
        (run,) = client.read_flow_runs()
        wait_for(lambda: has_heartbeat(client, run.id))
        script.process.kill()
        killed_at = time.monotonic()
        wait_for(lambda: client.read_flow_run(run.id).state.name == "Crashed", 120)
        print(f"Crashed {time.monotonic() - killed_at:.0f} s after the kill")
