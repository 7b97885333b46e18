"""The evaluation task: the metrics of a checkpoint on rows that neither training nor selection has seen."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.logging import get_run_logger

from trainlib._execution.causes import Cause
from trainlib._training.evaluating import Evaluation
from trainlib.errors import RayLostError, TrainingFailedError
from trainlib.tasks._prefect_server import wait_before_retry

__all__ = ["evaluate"]


def is_to_be_retried(task: Any, task_run: TaskRun, state: State[Any]) -> bool:
    """Whether a failed evaluation is made again: if its worker or Ray was lost, and not if the user's function raised."""
    error = state.result(raise_on_failure=False)
    is_lost = isinstance(error, TrainingFailedError) and error.cause is not Cause.USER
    if not is_lost and not isinstance(error, RayLostError):
        return False
    wait_before_retry()
    return True


@task(
    name="evaluate",
    task_run_name="evaluate · {what}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_condition_fn=is_to_be_retried,
    log_prints=False,
)
def evaluate(evaluation: Evaluation, location: str, what: str) -> dict[str, float]:
    """The metrics of a checkpoint, from one Ray worker.

    Args:
        evaluation: The user's function, and the rows.
        location: Where the files of the checkpoint are.
        what: What it is, for people.
    """
    logger = get_run_logger()
    return evaluation.of(location, logger.info)
