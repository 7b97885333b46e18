"""What becomes of the flow run of a process that was killed."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from trainlib._registry.run import RegisteredRun


def mark_interrupted(run: RegisteredRun, flow_run_id: str, say: Callable[[str], None]) -> None:
    """A flow run whose process was killed would look as if it ran for ever."""
    before = run.flow_run_before
    if before is None or before == flow_run_id:
        return
    with get_client(sync_client=True) as client:
        try:
            state = client.read_flow_run(UUID(before)).state
            if state is not None and not state.is_final():
                message = f"Its process was lost; flow run {flow_run_id} goes on."
                client.set_flow_run_state(UUID(before), Crashed(message=message), force=True)
        except ObjectNotFound:
            say(f"the interrupted flow run {before} is on another Prefect server: its state stays as it is")
