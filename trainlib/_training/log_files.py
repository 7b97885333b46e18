"""What a person finds in the folder of a training: its params, its results, and what each rank printed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainlib._execution.worker import WorkerFacts
from trainlib._json_text import as_json, text_of
from trainlib._secrets import masked
from trainlib._training.batch_writer import BatchWriter

__all__ = ["PARAMS", "PROGRESS", "RESULTS", "LogFiles", "log_of_rank"]

PARAMS = "params.json"
RESULTS = "result.json"
PROGRESS = "progress.csv"

_PLAIN_CELLS = (str, int, float, type(None))


def log_of_rank(rank: int) -> str:
    """The name of the file with what a rank printed.

    Example:
        >>> log_of_rank(0)
        'rank_0.log'
    """
    return f"rank_{rank}.log"


class LogFiles:
    """Writes the files, in the background. If the disk fails, they lack something, and the training goes on."""

    def __init__(self, folder: Path, *, left_out: Collection[str] = ()) -> None:
        """
        Args:
            folder: The training's own folder.
            left_out: The files that somebody else writes, such as a callback of the user.
        """
        self._folder = folder
        self._left_out = frozenset(left_out)
        self._writer: BatchWriter[dict[str, Any] | tuple[int, str]] = BatchWriter(self._write, "log-files")
        self._columns: list[str] | None = None
        self._config: dict[str, Any] | None = None
        self._config_json = "{}"
        self._config_cells: dict[str, Any] = {}
        self._appended_to: set[str] = set()
        self._problem: str | None = None
        self._has_told = False

    def params(self, config: dict[str, Any]) -> None:
        """Write the config, without its secrets."""
        if PARAMS in self._left_out:
            return
        try:
            (self._folder / PARAMS).write_text(as_json(masked(config), indent=2) + "\n")
        except Exception as error:  # whatever it is: no training fails because of its logs
            self._has_failed(error)

    def workers_started(self, attempt: int, workers: Sequence[WorkerFacts]) -> None:
        """Begin the part of an attempt in the file of each rank."""
        for rank, each in enumerate(workers):
            self._writer.put((rank, f"--- attempt {attempt} on {each.hostname} ({each.node_ip}), pid {each.pid} ---"))

    def printed(self, rank: int, line: str) -> None:
        """Add a line that a rank printed."""
        self._writer.put((rank, line))

    def reported(self, result: dict[str, Any]) -> None:
        """Add a result."""
        self._writer.put(dict(result))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def remarks(self) -> list[str]:
        """What a person should know of it, once."""
        dropped = f"{self._writer.dropped} lines were dropped" if self._writer.dropped else None
        if self._has_told or (problem := self._problem or dropped) is None:
            return []
        self._has_told = True
        return [f"the logs in {self._folder} are not complete: {problem}. MLflow has all metrics"]

    # -- in the background ----------------------------------------------------------------------------

    def _write(self, items: list[dict[str, Any] | tuple[int, str]]) -> None:
        results = [item for item in items if isinstance(item, dict)]
        lines: dict[int, list[str]] = {}
        for item in items:
            if isinstance(item, tuple):
                lines.setdefault(item[0], []).append(item[1])
        try:
            for rank, printed in lines.items():
                self._append(log_of_rank(rank), "\n".join(printed) + "\n")
            if results:
                self._write_results(results)
        except Exception as error:  # whatever it is: no training fails because of its logs
            self._has_failed(error)

    def _has_failed(self, error: Exception) -> None:
        self._problem = self._problem or f"{type(error).__name__}: {error}"

    def _write_results(self, results: Sequence[dict[str, Any]]) -> None:
        rows = []
        encoded = io.StringIO()
        for result in results:
            self._take_config(result.pop("config", None) or {})
            rows.append({**dict(_cells(result)), **self._config_cells})
            encoded.write(f'{as_json(result)[:-1]}, "config": {self._config_json}}}\n')
        if RESULTS not in self._left_out:
            self._append(RESULTS, encoded.getvalue())
        if PROGRESS not in self._left_out:
            self._add_rows(rows)

    def _take_config(self, config: dict[str, Any]) -> None:
        """Encode a config, without its secrets. All results of a training have the same, so that is done once."""
        if config is not self._config:
            shown = masked(config)
            self._config, self._config_json = config, as_json(shown)
            self._config_cells = dict(_cells(shown, "config/"))

    def _add_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to the table. If they have new columns, the whole table gets them."""
        before = self._columns if self._columns is not None else self._columns_before()
        new = dict.fromkeys(name for row in rows for name in row if name not in before)
        self._columns = [*before, *new]
        if new:
            self._widen(before)
        self._append(PROGRESS, _csv([row.get(name, "") for name in self._columns] for row in rows))

    def _columns_before(self) -> list[str]:
        """Those that an earlier process of this training has written."""
        try:
            with open(self._folder / PROGRESS, newline="") as file:
                return next(csv.reader(file), [])
        except FileNotFoundError:
            return []

    def _widen(self, before: Sequence[str]) -> None:
        assert self._columns is not None
        file = self._folder / PROGRESS
        aside = file.with_name(f".{PROGRESS}.{os.getpid()}")
        empty = [""] * (len(self._columns) - len(before))
        with open(aside, "w", newline="") as output:
            output.write(_csv([self._columns]))
            if before:
                with open(file, newline="") as rows:
                    next(reader := csv.reader(rows))
                    csv.writer(output, lineterminator="\n").writerows([*row, *empty] for row in reader)
        os.replace(aside, file)

    def _append(self, name: str, text: str) -> None:
        file = self._folder / name
        if name not in self._appended_to:
            _drop_half_line(file)
            self._appended_to.add(name)
        try:
            with open(file, "a", encoding="utf-8", errors="replace", newline="") as output:
                output.write(text)
        except BaseException:
            self._appended_to.discard(name)  # it may end with half a line now, to be dropped before the next one
            raise


def _drop_half_line(file: Path) -> None:
    """Remove the last line of a file if it has no end: the process that wrote it was killed."""
    if not file.exists() or file.stat().st_size == 0:
        return
    with open(file, "r+b") as whole:
        whole.seek(-1, os.SEEK_END)
        if whole.read(1) != b"\n":
            whole.seek(0)
            whole.truncate(whole.read().rfind(b"\n") + 1)


def _cells(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values as cells of a table: those of a dict in a dict have a column each.

    Example:
        >>> dict(_cells({"loss": 0.5, "val": {"accuracy": 1.0}}))
        {'loss': 0.5, 'val/accuracy': 1.0}
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _cells(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value if isinstance(value, _PLAIN_CELLS) else text_of(value, str)


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
