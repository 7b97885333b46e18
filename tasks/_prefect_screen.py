"""A training in the Prefect UI: the workers' lines as logs, and a progress artifact."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

from trainlib._training.terminal import compact

_UPDATE_S = 2.0


class PrefectScreen:
    """Shows a training in the task run that it was made in, through all of its attempts."""

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
