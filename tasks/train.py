"""The training task. One call is one attempt; Prefect's retries are the next ones."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import httpx
from prefect import task
from prefect.artifacts import create_link_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.logging import get_run_logger

from trainlib._training.terminal import compact
from trainlib._training.training import Training
from trainlib.errors import TrainingFailedError
from trainlib.result import Result

_UPDATE_S = 2.0


def budget_allows(task: Any, task_run: TaskRun, state: State[Any]) -> bool:
    """Whether a failed attempt is made again: its error knows."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, TrainingFailedError) and error.retry


@task(name="train", cache_policy=NO_CACHE, retry_condition_fn=budget_allows, log_prints=False)
def train(training: Training) -> Result:
    """Make one attempt at a training, from its newest checkpoint on."""
    if not any(isinstance(listener, PrefectListener) for listener in training.listeners):
        training.listeners.append(PrefectListener())
        create_link_artifact(
            link=training.run.url,
            link_text=f"MLflow: {training.run.name}",
            key="mlflow-run",
            description=f"The MLflow run of the training {training.run.name}.",
        )
    return training.attempt()


class PrefectListener:
    """Shows a training in the Prefect UI: the workers' lines as logs, and a progress artifact."""

    def __init__(self) -> None:
        self._logger = get_run_logger()
        self._artifact: UUID | None = None
        self._updated = 0.0
        self._latest = 0.0, ""

    def say(self, text: str) -> None:
        self._logger.info(text)

    def status(self, text: str) -> None:
        self._logger.info(text)

    def output(self, rank: int, text: str, is_error: bool) -> None:
        self._logger.info("[rank %d] %s", rank, text)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        percent = min(100.0, 100.0 * iteration / total) if total else 0.0
        self._latest = percent, f"iteration {iteration}{f'/{total}' if total else ''} · {compact(metrics)}"
        if time.monotonic() - self._updated >= _UPDATE_S:
            self._update()

    def close(self) -> None:
        if self._latest[1]:
            self._update()

    def _update(self) -> None:
        percent, text = self._latest
        self._updated = time.monotonic()
        try:
            if self._artifact is None:
                self._artifact = create_progress_artifact(percent, key="training-progress", description=text)  # type: ignore[assignment]
            else:
                update_progress_artifact(self._artifact, percent, description=text)
        except httpx.HTTPError as error:  # no reason to end a training; the next update may get through
            self._logger.debug("could not update the progress artifact: %s", error)
