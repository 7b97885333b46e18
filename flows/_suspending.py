"""Suspend in the Prefect UI: a training saves, frees its workers, and its process ends. Resume goes on from the checkpoint.

Prefect offers Suspend for the runs of deployments: a runner or worker starts a new process when one is resumed. Its engine hears
of a flow run that is suspended, and starts no more tasks of it. But it lets a task end by itself, and a training is one long
task. So a training looks itself, whenever it waits for something: what the engine has heard is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.exceptions import CancelledRun, Pause, PrefectException
from prefect.states import Paused, Suspended

from trainlib._execution.waiting import Interruption, SuspendedInThreadError, interruption, raise_if_cancelled
from trainlib.tasks._background import BackgroundSender

__all__ = ["KEPT_FOR", "FlowInterruption", "pause_of_suspended", "suspension_raised"]

# A run that is suspended for longer fails. Prefect's UI proposes five minutes.
KEPT_FOR = timedelta(days=30)
_SAVED = "What is to be kept is saved, and the workers are free."


class FlowInterruption(Interruption):
    """Set once a flow run is cancelled, or somebody has suspended it, or the one at the top that it belongs to, in Prefect.

    So it is once whoever called the flow in this thread has ended it.
    """

    def __init__(self) -> None:
        super().__init__()
        context = FlowRunContext.get()
        self._request = context.flow_run_suspension_request if context is not None else None
        self._sender = BackgroundSender()
        self._around = interruption()

    def is_set(self) -> bool:
        if self._around is not None and self._around.is_set():
            self.set()
        if not super().is_set() and self._request is not None and self._request.is_requested():
            self.suspend()
            # Saving may take longer than the five minutes that Prefect's UI proposes.
            state = self._request.get_state()
            if state is not None and state.state_details.flow_run_id is not None:
                self._sender.send("suspension", partial(_give_time_to_save, state.state_details.flow_run_id))
        return super().is_set()


@contextmanager
def suspension_raised() -> Iterator[None]:
    """Around a call of a task: give what interrupted it as such, and not as Prefect raises it."""
    try:
        yield
    except Pause:  # it was suspended before the task began
        raise SuspendedInThreadError from None
    except CancelledRun:  # the task has seen it, and says so with its state
        raise_if_cancelled()
        raise


def pause_of_suspended() -> Pause:
    """What ends the process of a flow run that is suspended, for Prefect's engine. To be called when all is saved.

    Gives the run a long time to be resumed. A server that does not answer does not hear of that.
    """
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    state = context.flow_run_suspension_request.get_state()
    try:
        with get_client(sync_client=True) as client:
            suspended = (state.state_details.flow_run_id if state is not None else None) or context.flow_run.id
            if suspended != context.flow_run.id:
                # Not to be resumed by itself: that is done by the flow that has called it, when it is run again.
                paused: State[None] = Paused(name="Suspended", message="The flow run that it belongs to is suspended.")
                client.set_flow_run_state(context.flow_run.id, paused, force=True)
            state = _given_time(client, suspended) or state
    except (httpx.HTTPError, PrefectException):
        pass
    return Pause(state=state)


def _give_time_to_save(flow_run_id: UUID) -> None:
    with get_client(sync_client=True) as client:
        _given_time(client, flow_run_id, "The newest checkpoints are being saved.")


def _given_time(client: SyncPrefectClient, flow_run_id: UUID, what: str = _SAVED) -> State[None] | None:
    """The new state of a suspended flow run that has a long time to be resumed; None if it has been resumed already."""
    now = client.read_flow_run(flow_run_id).state
    if now is None or not now.is_paused():
        return None
    until = datetime.now(UTC) + KEPT_FOR
    if now.state_details.pause_timeout is not None:
        until = max(until, now.state_details.pause_timeout)
    message = f"{what} Resume goes on from the newest checkpoint that is kept, until {until:%d %B %Y}."
    suspended: State[None] = Suspended(pause_expiration_time=until, message=message)
    client.set_flow_run_state(flow_run_id, suspended, force=True)
    return suspended
