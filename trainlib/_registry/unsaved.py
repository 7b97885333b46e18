"""The file for what MLflow has not accepted yet: points, params and tags of a run, one to a line, in order."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    from trainlib._registry.patience import Patience

    Entry = Metric | Param | RunTag

BATCH = 1000  # MLflow's own limit for one call
NOTES_AT_ONCE = 100  # its limit for params, and for tags


@dataclass(frozen=True)
class Batch:
    """What goes to MLflow in one call."""

    points: tuple[Metric, ...] = ()
    params: tuple[Param, ...] = ()
    tags: tuple[RunTag, ...] = ()

    def __len__(self) -> int:
        return len(self.points) + len(self.params) + len(self.tags)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of it. Notes come first: they do not depend on each other or on the points."""
        return (*self.params, *self.tags, *self.points)

    def send(self, client: MlflowClient, run_id: str) -> None:
        """Write it to MLflow, in one call."""
        client.log_batch(run_id, metrics=list(self.points), params=list(self.params), tags=list(self.tags))


class UnsavedFile:
    """Appended to while MLflow is away, read from the start when it is back, and removed once MLflow has everything.

    A line that MLflow gets twice does no harm: it ignores a point that is identical to one it has.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self._run_id = run_id
        self._done = 0
        """How many bytes at its start MLflow has accepted, or refused."""
        self._keeps = False
        self.was_written = False
        """Whether this object has put anything into it since it was last removed."""

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def append(self, entries: Sequence[Entry]) -> None:
        """Add lines, and see them safely to the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a") as file:
            file.writelines(json.dumps(_row(entry)) + "\n" for entry in entries)
            file.flush()
            os.fsync(file.fileno())
        self.was_written = True

    def next_batch(self) -> tuple[Batch, int]:
        """The oldest lines that are still to be written, and what to pass to :meth:`done` after that."""
        found: dict[str, list[Any]] = {"points": [], "params": [], "tags": []}
        most = {"points": BATCH - 2 * NOTES_AT_ONCE, "params": NOTES_AT_ONCE, "tags": NOTES_AT_ONCE}
        end = self._done
        if not self.exists:
            return Batch(), end
        with open(self.path, "rb") as file:
            file.seek(self._done)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # the process was killed while it wrote this line
                try:
                    kind, entry = _entry(json.loads(line), self._run_id)
                except (ValueError, KeyError):  # the disk was full; what it should have been comes again
                    end += len(line)
                    continue
                if len(found[kind]) >= most[kind]:
                    break
                found[kind].append(entry)
                end += len(line)
        return Batch(*(tuple(found[kind]) for kind in ("points", "params", "tags"))), end

    def done(self, end: int) -> None:
        """MLflow has everything up to there."""
        self._done = end

    def refused(self, end: int) -> None:
        """MLflow refuses what comes up to there. It stays in the file, for people, and is not tried again here."""
        self._done = end
        self._keeps = True

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.exists else 0

    def remove(self) -> None:
        """MLflow has all of it that it accepts."""
        if self._keeps:
            return
        self.path.unlink(missing_ok=True)
        self._done = 0
        self.was_written = False


def write_unsaved(client: MlflowClient, run_id: str, path: Path, patience: Patience) -> None:
    """Give MLflow what an earlier process of a run had to leave in its file. What MLflow refuses stays there."""
    file = UnsavedFile(path, run_id)
    while True:
        batch, end = file.next_batch()
        if not len(batch):
            break
        try:
            patience(batch.send, client, run_id)
        except ConnectionFailedError:
            raise
        except Exception:
            file.refused(end)
        else:
            file.done(end)
    file.remove()


def _row(entry: Entry) -> dict[str, Any]:
    from mlflow.entities import Metric, Param

    if isinstance(entry, Metric):
        return {"key": entry.key, "value": entry.value, "timestamp": entry.timestamp, "step": entry.step}
    return {"param" if isinstance(entry, Param) else "tag": entry.key, "value": entry.value}


def _entry(row: dict[str, Any], run_id: str) -> tuple[str, Entry]:
    from mlflow.entities import Metric, Param, RunTag

    if "param" in row:
        return "params", Param(row["param"], row["value"])
    if "tag" in row:
        return "tags", RunTag(row["tag"], row["value"])
    return "points", Metric(row["key"], row["value"], row["timestamp"], row["step"], run_id=run_id)
