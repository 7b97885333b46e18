"""The rows of a training, one an iteration. The newest are in memory, and the others in a file of the training's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trainlib._lazy_rows import LazyRows, Row

__all__ = ["FILE", "IN_MEMORY", "RowSpool", "RowsInFile"]

FILE = "history.jsonl"
IN_MEMORY = 250
"""So many rows are kept in memory, some 100 KB. Most trainings have no more of them, and need no file."""

_KEY = "training_iteration"


class RowSpool:
    """Takes in rows, in a bounded amount of memory. Of two rows of one iteration, the later one counts.

    The file only grows. So a :meth:`snapshot` stays what it is, whatever is added later, and a process that continues the
    training finds the rows that an earlier one on this machine wrote.
    """

    def __init__(self, path: Path, earlier: Iterable[Row] = ()) -> None:
        """
        Args:
            path: The file. What it has from an earlier process counts.
            earlier: The rows of earlier processes as the registry has them, for those that are not in the file.
        """
        self._path = path
        self._new: list[Row] = []
        self._end = 0
        """How much of the file is whole. What comes after that is a line that a killed process, or a full disk, cut off."""
        known = set()
        if path.exists():
            for end, row in _lines(path):
                known.add(row[_KEY])
                self._end = end
        for row in earlier:
            if row[_KEY] not in known:
                self.add(row)

    def add(self, row: Row) -> None:
        """Add a row; its iteration is ``training_iteration``."""
        self._new.append(row)
        if len(self._new) % IN_MEMORY == 0:
            self._spill()

    def snapshot(self) -> Sequence[Row]:
        """The rows until now, ordered by iteration."""
        if self._end:
            self._spill()
            return RowsInFile(self._path, self._end, self._new)
        newest = {row[_KEY]: row for row in self._new}
        return [newest[iteration] for iteration in sorted(newest)]

    def _spill(self) -> None:
        """Move the rows to the file. If the disk is full, they stay, and this is tried again later."""
        lines = "".join(json.dumps(row) + "\n" for row in self._new).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "r+b" if self._end else "wb") as file:
                file.seek(self._end)
                file.truncate()
                file.write(lines)
        except OSError:
            return
        self._end += len(lines)
        self._new = []


class RowsInFile(LazyRows):
    """Rows that are read from a file when they are asked for."""

    def __init__(self, path: Path, end: int, more: Sequence[Row] = ()) -> None:
        """
        Args:
            path: The file.
            end: How many bytes of it count. What is written later does not.
            more: Rows that are not in the file, and newer than those.
        """
        self._path = path
        self._end = end
        self._more = {row[_KEY]: row for row in more}

    def __iter__(self) -> Iterator[Row]:
        places = self._places()
        with open(self._path, "rb") as file:
            for iteration in sorted(places.keys() | self._more.keys()):
                if iteration in self._more:
                    yield self._more[iteration]
                else:
                    file.seek(places[iteration])
                    yield json.loads(file.readline())

    def _places(self) -> dict[int, int]:
        """Where in the file the row of each iteration begins. The last one counts."""
        if not self._path.exists():
            raise FileNotFoundError(
                f"the metrics of this training's iterations were kept in {self._path}, which is gone. MLflow has them too: "
                "read them with MlflowClient().get_metric_history(result.run_id, name)."
            )
        places, begin = {}, 0
        for end, row in _lines(self._path, self._end):
            places[row[_KEY]] = begin
            begin = end
        return places


def _lines(path: Path, most: int | None = None) -> Iterator[tuple[int, Row]]:
    """The rows of a file, each with where its line ends; of its first ``most`` bytes, or as many as are whole."""
    end = 0
    with open(path, "rb") as file:
        for line in file:
            if most is not None and end >= most:
                return
            try:
                row = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                row = None
            if not isinstance(row, dict) or _KEY not in row:
                return
            end += len(line)
            yield end, row
