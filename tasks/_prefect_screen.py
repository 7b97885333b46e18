"""A training in the Prefect UI: the workers' lines as logs, a progress artifact, and a link to MLflow."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from uuid import UUID

from prefect.artifacts import create_link_artifact, create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

from trainlib._training.terminal import compact
from trainlib.tasks._background import BackgroundSender

_UPDATE_S = 2.0
# How long the end of a training waits until its last state is shown.
_LAST_S = 5.0


class PrefectScreen:
    """Shows a training in the task run that it was made in, through all of its attempts."""

    def __init__(self) -> None:
        self._logger = get_run_logger()
        self._sender = BackgroundSender()
        self._artifact: UUID | None = None
        self._updated = 0.0
        self._latest = 0.0, ""

    def link(self, name: str, url: str) -> None:
        """Link to the training's MLflow run."""
        about = f"The MLflow run of the training {name}."
        self._sender.send(
            "link",
            partial(create_link_artifact, url, link_text=f"MLflow: {name}", key="mlflow-run", description=about),
        )

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
        self._sender.flush(_LAST_S)

    def _update(self) -> None:
        self._updated = time.monotonic()
        self._sender.send("progress", partial(self._send_progress, *self._latest))

    def _send_progress(self, percent: float, text: str) -> None:
        if self._artifact is None:
            self._artifact = create_progress_artifact(percent, key="training-progress", description=text)  # type: ignore[assignment]
        else:
            update_progress_artifact(self._artifact, percent, description=text)
