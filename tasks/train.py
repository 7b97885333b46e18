"""The training task. One call is one attempt; Prefect's retries are the next ones."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from trainlib._training.training import Training
from trainlib.errors import TrainingFailedError
from trainlib.result import Result
from trainlib.tasks._prefect_screen import PrefectScreen
from trainlib.tasks._prefect_server import wait_before_retry

__all__ = ["train"]


def is_to_be_retried(task: Any, task_run: TaskRun, state: State[Any]) -> bool:
    """Whether Prefect makes a failed attempt again: the training has decided, and its error says so.

    If it is, a server that does not answer is waited for, or it would not show the retry.
    """
    error = state.result(raise_on_failure=False)
    if not (isinstance(error, TrainingFailedError) and error.retry):
        return False
    wait_before_retry()
    return True


@task(name="train", cache_policy=NO_CACHE, retry_condition_fn=is_to_be_retried, log_prints=False)
def train(training: Training) -> Result:
    """Make one attempt at a training, from its newest checkpoint on."""
    screen = PrefectScreen()
    if training.display.add(screen):
        screen.link(training.run.name, training.run.url)
    return training.attempt()
