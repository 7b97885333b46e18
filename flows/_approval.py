"""Asking a person, with Prefect's own input form: the flow run is Paused until somebody answers, or time is over."""

from __future__ import annotations

import time
from enum import Enum
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.client.schemas.responses import SetStateStatus
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.input import RunInput, keyset_from_paused_state, read_flow_run_input
from prefect.states import Paused, Running
from pydantic import Field

from trainlib._execution.waiting import pause
from trainlib.errors import TrainlibError

__all__ = ["Answer", "PromotionForm", "ask"]

_LOOK_S = 2.0
# Prefect's server fails a run by itself that is paused for too long. That is only for runs whose process is gone.
_GRACE_S = 3600.0


class Answer(Enum):
    """What a person has said."""

    YES = "yes"
    NO = "no"
    NONE = "none"
    """Nothing, in the time that there was."""


class PromotionForm(RunInput):
    """What Prefect asks whoever resumes the flow run."""

    promote: Literal["yes", "no"] = Field(
        title="Promote?",
        description="yes: the alias is moved to the new version. no: it stays where it is, and the new version stays registered.",
    )


def ask(question: str, seconds: float) -> Answer:
    """Pause this flow run, show a question, and wait for the answer.

    It is asked once for each call: also when a flow run is retried whose process was killed while it waited.

    Args:
        question: Shown above the form, as Markdown.
        seconds: How long to wait.

    Raises:
        TrainlibError: Prefect does not let the flow run pause, or somebody has ended it meanwhile.
    """
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    run_id = context.flow_run.id
    state: State[Any] = Paused(timeout_seconds=int(seconds + _GRACE_S), pause_key=uuid4().hex)
    keyset = keyset_from_paused_state(state)
    state.state_details.run_input_keyset = {str(name): key for name, key in keyset.items()}
    deadline = time.monotonic() + seconds
    with get_client(sync_client=True) as client:
        answered = client.set_flow_run_state(run_id, state)
        if answered.status is not SetStateStatus.ACCEPT:
            raise TrainlibError(f"Prefect does not let this flow run wait for an answer: {answered.details}")
        PromotionForm.with_initial_data(description=question).save(keyset, flow_run_id=run_id)
        while not _is_resumed(client, run_id):
            if (left := deadline - time.monotonic()) <= 0:
                client.set_flow_run_state(run_id, Running(message="Nobody has answered in time."))
                break
            pause(min(_LOOK_S, left))
    given: Any = read_flow_run_input(keyset["response"], flow_run_id=run_id)  # maybe in the last moment
    return Answer(given["promote"]) if given else Answer.NONE


def _is_resumed(client: SyncPrefectClient, run_id: UUID) -> bool:
    try:
        state = client.read_flow_run(run_id).state
    except (httpx.HTTPError, PrefectException):  # a server that is restarted just now is asked again
        return False
    if state is not None and state.is_final():
        raise TrainlibError(f"the flow run was ended while it waited for an answer: it is {state.name}")
    return state is not None and state.is_running()
