"""The training task. One call is one attempt; Prefect's retries are the next ones."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Cancelled

from trainlib._execution.waiting import CancelledInThreadError, SuspendedInThreadError, pause
from trainlib._training.training import Training
from trainlib.errors import TrainingFailedError
from trainlib.result import Result
from trainlib.tasks._prefect_screen import PrefectScreen
from trainlib.tasks._prefect_server import wait_before_retry
from trainlib.tasks._stopped import shown_as_stopped

__all__ = ["train"]


def is_to_be_retried(task: Any, task_run: TaskRun, state: State[Any]) -> bool:
    """Whether Prefect makes a failed attempt again: the training has decided, and its error says so.

    If it is, it is made after the pause that the error asks for. Prefect's own delay could not be cancelled in a trial's
    thread. A server that does not answer is waited for, or it would not show the retry.
    """
    error = state.result(raise_on_failure=False)
    if not (isinstance(error, TrainingFailedError) and error.retry):
        return False
    pause(error.retry_after_s)
    wait_before_retry()
    return True


@task(name="train", cache_policy=NO_CACHE, retry_condition_fn=is_to_be_retried, log_prints=False)
def train(training: Training) -> Result:
    """Make one attempt at a training, from its newest checkpoint on."""
    screen = PrefectScreen()
    if training.display.add(screen):
        screen.link(training.run.name, training.run.url)
    try:
        return shown_as_stopped(training.attempt())
    except SuspendedInThreadError as suspended:
        return interrupted_state(suspended, "The training")  # type: ignore[return-value]


def interrupted_state(error: CancelledInThreadError, what: str) -> State[Any]:
    """The state of a task run that was interrupted. One that is suspended is over, too: Resume makes a new one."""
    if isinstance(error, SuspendedInThreadError):
        return Cancelled(name="Suspended", message=f"{what} was suspended.")
    return Cancelled(message=f"{what} was ended.")
