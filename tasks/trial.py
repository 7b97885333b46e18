"""The trial task. One call is one attempt at a trial; Prefect's retries are the next ones."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from trainlib._execution.waiting import CancelledInThreadError
from trainlib._training.display import Display
from trainlib.result import Result
from trainlib.tasks._stopped import shown_as_stopped
from trainlib.tasks.train import interrupted_state, is_to_be_retried
from trainlib.tune._sweep import Sweep
from trainlib.tune._trial import SweepTrial

__all__ = ["trial"]


@task(
    name="trial",
    task_run_name="{trial.title}",
    cache_policy=NO_CACHE,
    retry_condition_fn=is_to_be_retried,
    log_prints=False,
    persist_result=False,
)
def trial(sweep: Sweep, trial: SweepTrial, show: Any) -> Result:
    """Make one attempt at a trial, from its newest checkpoint on.

    Args:
        sweep: The sweep that it belongs to.
        trial: Which trial.
        show: What shows its lines to people, besides Prefect.
    """
    training = sweep.start(trial, Display([TrialScreen(trial.number, show)]))
    try:
        return shown_as_stopped(training.attempt())
    except CancelledInThreadError as interrupted:
        return interrupted_state(interrupted, "The sweep")  # type: ignore[return-value]


class TrialScreen:
    """Shows a trial's remarks and lines in Prefect's log and in the terminal. The sweep's table shows how far it is."""

    def __init__(self, number: int, show: Any) -> None:
        self._number = number
        self._show = show

    def say(self, text: str) -> None:
        get_run_logger().info(text)
        self._show.say(f"trial {self._number}: {text}")

    def warn(self, text: str) -> None:
        get_run_logger().warning(text)
        self._show.warn(f"trial {self._number}: {text}")

    def status(self, text: str) -> None:
        pass

    def output(self, rank: int, text: str, is_error: bool) -> None:
        get_run_logger().info("[rank %d] %s", rank, text)
        self._show.output(self._number, rank, text, is_error)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        self._show.result(self._number, metrics)

    def close(self, *, succeeded: bool) -> None:
        pass
