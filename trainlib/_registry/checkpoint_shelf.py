"""The folder ``checkpoints`` of a training's own folder: what there is, and which are the best and the newest.

Checkpoints on this disk are links there. For one in a store elsewhere, it is a file with its URI. ``newest`` is what a retry
resumes from, and ``best_1``, ``best_2``, ... are those that ``CheckpointConfig`` asks for, the best first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainlib import _storage as storage
from trainlib._registry.logged_models import checkpoint_name
from trainlib._registry.retention import SavedCheckpoint

__all__ = ["FOLDER", "CheckpointShelf", "is_own_shelf", "read_shelf", "withdraw"]

FOLDER = "checkpoints"
_JOURNAL = "saved.jsonl"
_NEWEST = "newest"
_BEST = "best_{}"
_URI = ".uri"


class CheckpointShelf:
    """Shows a person the checkpoints of one training. It is called from one thread at a time."""

    def __init__(self, log_dir: Path, *, is_local: bool) -> None:
        """
        Args:
            log_dir: The training's own folder.
            is_local: Whether its checkpoints are on this disk.
        """
        self._folder = log_dir / FOLDER
        self._is_local = is_local
        self._marked: dict[str, int] = {}

    def put(self, saved: SavedCheckpoint) -> None:
        """Show a checkpoint that was saved."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._point(checkpoint_name(saved.index), saved.location, saved.location)
        self._note(asdict(saved))

    def remove(self, saved: SavedCheckpoint) -> None:
        """Show it no more. Does nothing if it was not shown."""
        entry = self._entry(checkpoint_name(saved.index))
        if entry.is_symlink() or entry.exists():
            entry.unlink()
            self._note({"index": saved.index, "deleted": True})

    def mark(self, newest: SavedCheckpoint | None, best: Sequence[SavedCheckpoint]) -> None:
        """Show which checkpoint is the newest, and which are the best, the best of them first."""
        marks = {_NEWEST: newest, **{_BEST.format(rank): each for rank, each in enumerate(best, start=1)}}
        wanted = {name: each for name, each in marks.items() if each is not None}
        for name in self._marked.keys() - wanted.keys():
            self._entry(name).unlink(missing_ok=True)
        for name, each in wanted.items():
            if self._marked.get(name) != each.index:
                self._point(name, checkpoint_name(each.index), each.location)
        self._marked = {name: each.index for name, each in wanted.items()}

    def _point(self, name: str, target: str, uri: str) -> None:
        entry = self._entry(name)
        entry.unlink(missing_ok=True)
        if self._is_local:
            entry.symlink_to(target)
        else:
            entry.write_text(uri + "\n")

    def _entry(self, name: str) -> Path:
        return self._folder / (name if self._is_local else name + _URI)

    def _note(self, facts: dict[str, Any]) -> None:
        _write(self._folder, facts)


def _write(folder: Path, facts: dict[str, Any]) -> None:
    with open(folder / _JOURNAL, "a") as journal:
        journal.write(json.dumps(facts, default=repr) + "\n")


def withdraw(log_dir: Path, saved: SavedCheckpoint) -> None:
    """Show a checkpoint no more that was deleted after its training, nor that it was the newest or one of the best."""
    folder = log_dir / FOLDER
    entries = list(folder.iterdir()) if folder.is_dir() else []
    shown = [entry for entry in entries if _leads_to(entry, saved.location)]
    for entry in shown:
        entry.unlink()
    if shown:
        _write(folder, {"index": saved.index, "deleted": True})


def _leads_to(entry: Path, location: str) -> bool:
    if entry.is_symlink():
        return entry.resolve() == Path(location).resolve()
    return entry.suffix == _URI and entry.read_text().strip() == location


def is_own_shelf(log_dir: Path) -> bool:
    """Whether a training of this user has noted the checkpoints that :func:`read_shelf` reads."""
    journal = log_dir / FOLDER / _JOURNAL
    return all(storage.is_own(path) for path in (log_dir, journal.parent, journal) if path.exists())


def read_shelf(log_dir: Path) -> list[SavedCheckpoint]:
    """The checkpoints that the folder of a training shows, by their numbers."""
    journal = log_dir / FOLDER / _JOURNAL
    found: dict[int, SavedCheckpoint] = {}
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            facts = json.loads(line)
        except ValueError:
            continue  # the process was killed in the middle of it
        if facts.get("deleted"):
            found.pop(facts["index"], None)
        else:
            found[facts["index"]] = SavedCheckpoint(**facts)
    return [found[index] for index in sorted(found)]
