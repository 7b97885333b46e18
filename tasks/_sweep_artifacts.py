"""A sweep in the Prefect UI: a table of its trials, and at the end its summary with plots."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from uuid import UUID

import httpx
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.logging import get_run_logger

from trainlib.tune._sweep import Sweep
from trainlib.tune._table import rows_of, summary_of

_UPDATE_S = 5.0
_MOST_ROWS = 100


class SweepArtifacts:
    """Keeps the artifacts of a sweep's flow run up to date, not more often than a person looks."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._logger = get_run_logger()
        self._table: UUID | None = None
        self._updated = time.monotonic()

    def open(self) -> None:
        """Link to the sweep's run."""
        run = self._sweep.run
        create_link_artifact(
            link=run.url,
            link_text=f"MLflow: {run.name}",
            key="mlflow-run",
            description=f"The MLflow run of the sweep {run.name}, the parent of its trials' runs.",
        )

    def update(self) -> None:
        """Show where the trials are, if the last look is some time ago."""
        if time.monotonic() - self._updated >= _UPDATE_S:
            self._write_table()

    def close(self, plots: list[Path]) -> None:
        """Show how it ended."""
        self._write_table()
        images = [f"![{plot.stem}](data:image/png;base64,{_base64(plot)})" for plot in plots]
        lines = [f"- {line}" for line in summary_of(self._sweep)]
        text = "\n".join([f"## {self._sweep.run.name}", "", *lines, "", *images])
        about = f"How the sweep {self._sweep.run.name} ended."
        try:
            create_markdown_artifact(text, key="sweep-summary", description=about)
        except httpx.HTTPError as error:  # no reason to lose what the sweep gave
            self._logger.warning("could not write the summary of the sweep: %s", error)

    def _write_table(self) -> None:
        self._updated = time.monotonic()
        rows = rows_of(self._sweep, _MOST_ROWS)
        if not rows:
            return
        about = f"{len(self._sweep.trials)} trials, the best is marked with a star."
        try:
            if self._table is None:
                self._table = create_table_artifact(rows, key="trials", description=about)  # type: ignore[assignment]
            else:
                with get_client(sync_client=True) as client:
                    client.update_artifact(self._table, ArtifactUpdate(data=json.dumps(rows), description=about))
        except httpx.HTTPError as error:  # no reason to end a sweep; the next update may get through
            self._logger.debug("could not update the table of trials: %s", error)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
