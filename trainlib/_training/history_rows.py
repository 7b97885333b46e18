"""The rows of a training, one an iteration. The newest are in memory, and the others in a file of the training's folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle

from trainlib import _storage as storage
from trainlib._lazy_rows import LazyRows, Row

__all__ = ["FILE", "IN_MEMORY", "RowSpool", "RowsInFile", "SpooledRow"]

FILE = "history.jsonl"
IN_MEMORY = 250
"""So many rows are kept in memory, some 100 KB. Most trainings have no more of them, and need no file."""

_KEY = "training_iteration"
_ATTEMPT = "what is known of an attempt"
_PICKLED = "a pickled row"
_IN_JSON = frozenset({float, int, bool, str, type(None)})


class SpooledRow:
    """A row, and what all rows of its attempt have in common. Of that there is one object, and one line in the file."""

    __slots__ = ("common", "own")

    def __init__(self, own: Row, common: Mapping[str, Any]) -> None:
        self.own = own
        self.common = common

    @property
    def iteration(self) -> int:
        return self.own[_KEY]  # type: ignore[no-any-return]

    def whole(self) -> Row:
        """The row by itself. Times and iterations of an attempt are counted from where it began."""
        if not self.common:
            return self.own
        row = {**self.own, **self.common}
        row["iterations_since_restore"] = row[_KEY] - row.pop("resumed_at")
        row["time_since_restore"] = row["time_total_s"] - row.pop("trained_before_s")
        return row


class RowSpool:
    """Takes in rows, in a bounded amount of memory. Of two rows of one iteration, the later one counts.

    The file only grows. So a :meth:`snapshot` stays what it is, whatever is added later, and a process that continues the
    training finds the rows that an earlier one on this machine wrote.
    """

    def __init__(self, path: Path, earlier: Iterable[Row] = ()) -> None:
        """
        Args:
            path: The file. What it has from an earlier process of this user counts. Rows may be pickles, which can run any code,
                so one that somebody else has written is replaced.
            earlier: The rows of earlier processes as the registry has them, for those that are not in the file.
        """
        self._path = path
        self._new: list[SpooledRow] = []
        self._end = 0
        """How much of the file is whole. What comes after that is a line that a killed process, or a full disk, cut off."""
        self._common: Mapping[str, Any] = {}
        """What the last rows in the file have in common."""
        known = set()
        self._is_ours = not path.parent.exists() or (storage.is_own(path.parent) and _is_own_or_gone(path))
        if self._is_ours and path.exists():
            for end, row in _lines(path):
                self._end = end
                self._common = row.get(_ATTEMPT, self._common)
                known.add(row.get(_KEY))
        for row in earlier:
            if row[_KEY] not in known:
                self.add(row)

    def add(self, row: Row, common: Mapping[str, Any] | None = None) -> None:
        """Add a row; its iteration is ``training_iteration``. ``common`` is the same object for all rows of an attempt."""
        self._new.append(SpooledRow(row, common or {}))
        if len(self._new) % IN_MEMORY == 0:
            self._spill()

    def snapshot(self) -> Sequence[Row]:
        """The rows until now, ordered by iteration."""
        if self._end:
            self._spill()
        return RowsInFile(self._path, self._end, self._new)

    def _spill(self) -> None:
        """Move the rows to the file. If the disk is full, they stay, and this is tried again later."""
        if not self._is_ours:
            return
        common, lines = self._common, []
        for row in self._new:
            if row.common is not common:
                common = row.common
                lines.append(json.dumps({_ATTEMPT: dict(common)}))
            lines.append(_line(row.own))
        written = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "r+b" if self._end else "wb") as file:
                file.seek(self._end)
                file.truncate()
                file.write(written)
        except OSError:
            return
        self._end += len(written)
        self._common, self._new = common, []


class RowsInFile(LazyRows):
    """Rows that are read from a file when they are asked for."""

    def __init__(self, path: Path, end: int, more: Sequence[SpooledRow] = (), *, has_pickles: bool = True) -> None:
        """
        Args:
            path: The file.
            end: How many bytes of it count, 0 if there is none. What is written later does not count.
            more: Rows that are not in the file, and newer than those.
            has_pickles: Whether rows in it may be pickled. Of a file that has none, nothing is ever unpickled.
        """
        self._path = path
        self._end = end
        self._more = {row.iteration: row for row in more}
        self._has_pickles = has_pickles

    def __iter__(self) -> Iterator[Row]:
        if not self._end:
            yield from (self._more[iteration].whole() for iteration in sorted(self._more))
            return
        places = self._places()
        with open(self._path, "rb") as file:
            for iteration in sorted(places.keys() | self._more.keys()):
                if iteration in self._more:
                    yield self._more[iteration].whole()
                else:
                    begin, common = places[iteration]
                    file.seek(begin)
                    read = json.loads(file.readline())
                    yield SpooledRow(_row(read) if self._has_pickles else read, common).whole()

    def __len__(self) -> int:
        return len((self._places().keys() if self._end else set()) | self._more.keys())

    def _places(self) -> dict[int, tuple[int, Mapping[str, Any]]]:
        """Where in the file the row of each iteration begins, and what it has in common with others. The last one counts."""
        if not self._path.exists():
            raise FileNotFoundError(
                f"the metrics of this training's iterations were kept in {self._path}, which is gone. MLflow has them too: "
                "read them with MlflowClient().get_metric_history(result.run_id, name)."
            )
        places: dict[int, tuple[int, Mapping[str, Any]]] = {}
        begin, common = 0, {}
        for end, row in _lines(self._path, self._end):
            if _ATTEMPT in row:
                common = row[_ATTEMPT]
            else:
                places[row[_KEY]] = begin, common
            begin = end
        return places


def _is_own_or_gone(path: Path) -> bool:
    """Whether a file is this user's. One of somebody else is deleted, if that can be done."""
    with suppress(OSError):
        if path.exists() and not storage.is_own(path):
            path.unlink()
        return True
    return False


def _line(row: Row) -> str:
    """A row as a line of the file. What JSON would change, such as a tuple or an array, is pickled."""
    if not _IN_JSON.issuperset(map(type, row.values())):
        row = {_KEY: row[_KEY], _PICKLED: base64.b64encode(cloudpickle.dumps(row)).decode()}
    return json.dumps(row)


def _row(read: Row) -> Row:
    return cloudpickle.loads(base64.b64decode(read[_PICKLED])) if _PICKLED in read else read


def _lines(path: Path, most: int | None = None) -> Iterator[tuple[int, Row]]:
    """The lines of a file, each with where it ends; of its first ``most`` bytes, or as many as are whole."""
    end = 0
    with open(path, "rb") as file:
        for line in file:
            if most is not None and end >= most:
                return
            try:
                row = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                row = None
            if not isinstance(row, dict) or not (_KEY in row or _ATTEMPT in row):
                return
            end += len(line)
            yield end, row
