"""A training in the Prefect UI: the workers' lines as logs, a progress artifact, a link to MLflow, and a report at the end."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.logging import get_run_logger

from trainlib._training.summary import TrainingSummary
from trainlib._training.terminal import compact
from trainlib.tasks._background import BackgroundSender
from trainlib.tasks._training_report import report

__all__ = ["LINK_KEY", "REPORT_KEY", "PrefectScreen", "percent_done", "show_report"]

LINK_KEY = "mlflow-run"
REPORT_KEY = "training-report"
_UPDATE_S = 2.0
# How long the end of a training waits until its last state is shown.
_LAST_S = 5.0
# Whoever has ended a training does not want to wait.
_LAST_OF_ENDED_S = 1.0
# Without a known end, the bar is half full after so many iterations, and never full.
_HALF_AFTER = 20


def percent_done(iteration: int, total: int | None) -> float:
    """How full the bar is. If nobody knows how many iterations there will be, it only moves.

    Example:
        >>> percent_done(3, 4), percent_done(20, None), percent_done(60, None)
        (75.0, 50.0, 75.0)
    """
    done = 100.0 * iteration / (total or iteration + _HALF_AFTER)
    return min(100.0, round(done, 3))  # one of Prefect's UIs shows all digits


class PrefectScreen:
    """Shows a training in the task run that it was made in, through all of its attempts."""

    def __init__(self) -> None:
        self._logger = get_run_logger()
        self._sender = BackgroundSender()
        self._artifact: UUID | None = None
        self._updated = 0.0
        self._latest: tuple[int, int | None, dict[str, Any]] | None = None

    def link(self, name: str, url: str) -> None:
        """Link to the training's MLflow run."""
        about = f"The MLflow run of the training {name}."
        self._sender.send(
            "link",
            partial(create_link_artifact, url, link_text=f"MLflow: {name}", key=LINK_KEY, description=about),
        )

    def say(self, text: str) -> None:
        self._logger.info(text)

    def warn(self, text: str) -> None:
        self._logger.warning(text)

    def status(self, text: str) -> None:
        self._logger.info(text)

    def output(self, rank: int, text: str, is_error: bool) -> None:
        self._logger.info("[rank %d] %s", rank, text)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        self._latest = iteration, total, metrics
        if time.monotonic() - self._updated >= _UPDATE_S:
            self._update()

    def close(self, *, succeeded: bool) -> None:
        self._update(is_complete=succeeded)
        self._sender.flush(_LAST_S if succeeded else _LAST_OF_ENDED_S)

    def _update(self, *, is_complete: bool = False) -> None:
        if self._latest is None:
            return
        self._updated = time.monotonic()
        iteration, total, metrics = self._latest
        percent = 100.0 if is_complete else percent_done(iteration, total)
        of = f"/{total}" if total else " of an unknown number"
        text = f"iteration {iteration}{of} · {compact(metrics)}"
        self._sender.send("progress", partial(self._send_progress, percent, text))

    def _send_progress(self, percent: float, text: str) -> None:
        if self._artifact is None:
            self._artifact = create_progress_artifact(percent, key="training-progress", description=text)  # type: ignore[assignment]
        else:
            update_progress_artifact(self._artifact, percent, description=text)


def show_report(summary: TrainingSummary) -> BackgroundSender:
    """Show what came of a training, in the flow run that this is called in. Does not wait: whoever wants to calls flush()."""
    sender = BackgroundSender()

    def send() -> None:
        text, first_line = report(summary)
        create_markdown_artifact(text, key=REPORT_KEY, description=first_line)

    sender.send("report", send)
    return sender
