"""Where a trainer keeps logs: a folder of its own, and in it a folder for each run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainlib import _storage as storage

__all__ = ["LogFolders"]

_RUN = re.compile(r"run_(\d+)")


@dataclass(frozen=True)
class LogFolders:
    """Where a trainer's logs are, and where its checkpoints are stored."""

    logdir: Path
    """The trainer's own folder, on this machine."""
    storage_path: str | None
    """``RunConfig.storage_path``. None: as for all trainings."""
    below: Path
    """The folder below which a training looks for the folder of its logs."""

    @classmethod
    def of(cls, given: str | os.PathLike[str] | None, now: datetime) -> LogFolders:
        """The folders of a trainer. They are made, so that no other trainer gets the same ones.

        Args:
            given: A path, or a URI, where checkpoints are kept; logs are then on this machine. A relative path is relative
                to the folder of all runs. None: a new folder in that one.
            now: When the trainer was created.
        """
        runs = storage.home() / "runs"
        location = os.fspath(given) if given is not None else None
        if location is not None and "://" not in location:
            logdir = runs / Path(location).expanduser()
            logdir.mkdir(parents=True, exist_ok=True)
            return cls(logdir, str(logdir), logdir)
        return cls(_new_folder(runs, f"sgd_{now:%Y-%m-%d_%H-%M-%S}"), location, runs)

    def next_run(self) -> Path:
        """Make the folder of the next run. The numbers count on if earlier trainers have used the same folder."""
        while True:
            taken = [int(found[1]) for each in self.logdir.iterdir() if (found := _RUN.fullmatch(each.name))]
            folder = self.logdir / f"run_{max(taken, default=0) + 1:03d}"
            try:
                folder.mkdir()
                return folder
            except FileExistsError:  # another process was faster
                continue

    def log_folder(self, run: Path) -> str:
        """The folder of a run, as a training is told it."""
        return str(run.relative_to(self.below))


def _new_folder(parent: Path, name: str) -> Path:
    """A folder that has not been there; two trainers may be created in the same second."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}_{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
