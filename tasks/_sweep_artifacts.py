"""A sweep in the Prefect UI: a table of its trials, and at the end its summary with plots."""

from __future__ import annotations

import base64
import json
import time
from functools import partial
from pathlib import Path
from uuid import UUID

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from trainlib.tasks._background import BackgroundSender
from trainlib.tasks._prefect_screen import LINK_KEY
from trainlib.tune._sweep import Sweep
from trainlib.tune._table import rows_of, summary_of

__all__ = ["SUMMARY_KEY", "SweepArtifacts"]

SUMMARY_KEY = "sweep-summary"

_UPDATE_S = 5.0
# How long the end of a sweep waits until its summary is shown.
_LAST_S = 10.0
_MOST_ROWS = 100


class SweepArtifacts:
    """Keeps the artifacts of a sweep's flow run up to date, not more often than a person looks."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._sender = BackgroundSender()
        self._table: UUID | None = None
        self._updated = time.monotonic()

    def open(self) -> None:
        """Link to the sweep's run."""
        run = self._sweep.run
        about = f"The trials of the sweep {run.name} in MLflow. Their parent is the [run of the sweep]({run.url})."
        self._sender.send(
            "link",
            partial(
                create_link_artifact,
                self._sweep.trials_url,
                link_text=f"MLflow: {run.name}",
                key=LINK_KEY,
                description=about,
            ),
        )

    def update(self) -> None:
        """Show where the trials are, if the last look is some time ago."""
        if time.monotonic() - self._updated >= _UPDATE_S:
            self._write_table()

    def close(self, plots: list[Path]) -> None:
        """Show how it ended."""
        self._write_table()
        images = [f"![{plot.stem}](data:image/png;base64,{_base64(plot)})" for plot in plots]
        lines = summary_of(self._sweep)
        text = "\n".join([f"## {self._sweep.run.name}", "", *(f"- {line}" for line in lines), "", *images])
        about = next((line for line in lines if line.startswith("best: ")), lines[0])
        self._sender.send("summary", partial(create_markdown_artifact, text, key=SUMMARY_KEY, description=about))
        self._sender.flush(_LAST_S)

    def _write_table(self) -> None:
        self._updated = time.monotonic()
        rows = rows_of(self._sweep, _MOST_ROWS)
        if not rows:
            return
        about = f"{len(self._sweep.trials)} trials, the best is marked with a star."
        self._sender.send("table", partial(self._send_table, rows, about))

    def _send_table(self, rows: list[dict[str, str]], about: str) -> None:
        if self._table is None:
            self._table = create_table_artifact(rows, key="trials", description=about)  # type: ignore[assignment]
        else:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._table, ArtifactUpdate(data=json.dumps(rows), description=about))


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
