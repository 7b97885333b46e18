"""Copies of trainlib's home folder, made while trainings use it, and put back into an empty one.

The databases are copied first, each as it is at one moment, and the files after them: what a database knows of is
written before it is known, so it is there to be copied, unless it has been deleted meanwhile.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._format import FORMAT
from trainlib._home import require_readable
from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.database import copy_database, upgrade
from trainlib._registry.logged_models import location_of, logged_models
from trainlib._registry.ownership import Owner, release
from trainlib._registry.store import TrackingStore
from trainlib.errors import FormatError

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["Backup", "back_up", "put_back"]

_MANIFEST = "backup.json"
_FILES, _MLFLOW, _PREFECT, _RESULTS = "home", "mlflow.db", "prefect.db", "prefect-storage"
# What stands beside a database file while it is open, and what belongs to one process.
_NOT_COPIED = ("*.db-wal", "*.db-shm", "*.db-journal", "*.lock", ".staging", ".*.part")
# Where MLflow keeps locations.
_LOCATIONS = {
    "experiments": ["artifact_location"],
    "runs": ["artifact_uri"],
    "logged_models": ["artifact_location"],
    "model_versions": ["source", "storage_location"],
    "model_version_tags": ["value"],
}


@dataclass(frozen=True)
class Backup:
    """What is in the folder of a backup."""

    format: int
    home: str
    """The folder that was copied. Locations in the database begin with it."""
    checkpoints: int = 0
    """How many checkpoints are in it."""
    elsewhere: list[str] = field(default_factory=list)
    """Artifact locations outside of the home folder, which are not copied."""


def back_up(folder: Path, home: Path, prefect_database: Path | None) -> Backup:
    """Copy a home folder, with both databases, into a new folder.

    Raises:
        FileExistsError: the folder is not empty.
        FileNotFoundError: there is no database in the home folder.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: choose a new folder for the backup")
    if not (home / _MLFLOW).exists():
        raise FileNotFoundError(
            f"there is nothing to copy: no {_MLFLOW} in {home}. Set TRAINLIB_HOME to another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # as the home: databases, settings and logs are nobody else's business
    copy_database(home / _MLFLOW, folder / _MLFLOW)
    if prefect_database is not None and prefect_database.exists():
        copy_database(prefect_database, folder / _PREFECT)
        if (results := prefect_database.parent / "storage").exists():
            _copy_tree(results, folder / _RESULTS, ())
    skipped = [
        *(home / _MLFLOW, folder),
        home / "platform",  # of the processes that run now; a copy of the home must not join them
        *([prefect_database.parent] if prefect_database is not None else []),
    ]
    _copy_tree(home, folder / _FILES, skipped)
    client = _client(folder / _MLFLOW)
    checkpoints, elsewhere = _complete(client, home, folder / _FILES)
    backup = Backup(FORMAT, str(home), checkpoints, elsewhere)
    (folder / _MANIFEST).write_text(json.dumps(asdict(backup), indent=1) + "\n")  # last: only a whole backup has it
    return backup


def put_back(folder: Path, home: Path, prefect_database: Path | None) -> Backup:
    """Make an empty home folder what a backup was made of. Trainings that ran at that time count as interrupted.

    Raises:
        FileNotFoundError: the folder is not a backup, or one that was not finished.
        FileExistsError: the home folder, or Prefect's database, is in use.
        FormatError: a newer trainlib made the backup.
    """
    manifest = folder / _MANIFEST
    if not manifest.exists():
        raise FileNotFoundError(f"{folder} is not a complete backup: it has no {_MANIFEST}")
    try:
        backup = Backup(**json.loads(manifest.read_text()))
    except (ValueError, TypeError) as error:
        raise FormatError(f"{manifest} cannot be read: {error}") from error
    require_readable(backup.format, f"the backup {folder}")
    if home.exists() and any(home.iterdir()):
        raise FileExistsError(f"{home} is not empty: set TRAINLIB_HOME to a new folder, or move what is there away")
    if (folder / _PREFECT).exists() and prefect_database is not None and prefect_database.exists():
        raise FileExistsError(f"{prefect_database} exists: set PREFECT_HOME to a new folder, or move it away")
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    shutil.copytree(folder / _FILES, home, dirs_exist_ok=True, symlinks=True)
    home.chmod(
        0o700
    )  # once more: a copy of a folder has its permissions, and somebody may have changed those of the backup
    if (folder / _PREFECT).exists() and prefect_database is not None:
        copy_database(folder / _PREFECT, prefect_database)
        if (folder / _RESULTS).exists():
            shutil.copytree(folder / _RESULTS, prefect_database.parent / "storage", dirs_exist_ok=True)
    copy_database(folder / _MLFLOW, home / _MLFLOW)
    _relocate(home / _MLFLOW, Path(backup.home), home)
    _relink(home, Path(backup.home))
    _interrupt_all(_client(home / _MLFLOW))
    return backup


def _copy_tree(source: Path, target: Path, skipped: list[Path] | tuple[Path, ...]) -> None:
    """Copy a folder in use. What disappears meanwhile is left out."""
    patterns = shutil.ignore_patterns(*_NOT_COPIED)
    apart = {path.absolute() for path in skipped}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return set(patterns(folder, names)) | {name for name in names if Path(folder, name).absolute() in apart}

    def copy(one: str, other: str) -> None:
        try:
            shutil.copy2(one, other, follow_symlinks=False)
        except FileNotFoundError:
            Path(other).unlink(missing_ok=True)

    try:
        shutil.copytree(source, target, symlinks=True, ignore=ignored, copy_function=copy, dirs_exist_ok=True)
    except shutil.Error as error:  # folders that have disappeared
        if kept := [each for each in error.args[0] if Path(each[0]).exists()]:
            raise OSError(f"{kept[0][0]} cannot be copied: {kept[0][2]}") from error


def _complete(client: MlflowClient, home: Path, copied: Path) -> tuple[int, list[str]]:
    """Make sure that each checkpoint that the copied database knows of is complete in the copy.

    One that was deleted while the files were copied is deleted in the copied database too. Gives how many there are, and
    the locations that are not in the home folder.
    """
    found, elsewhere = 0, []
    for experiment in client.search_experiments():
        root = storage.local_path(experiment.artifact_location)
        if root is None or not root.is_relative_to(home):
            if client.search_runs([experiment.experiment_id], max_results=1):
                elsewhere.append(experiment.artifact_location)
            continue
        for model in logged_models(client, experiment.experiment_id):
            if tags.CHECKPOINT_INDEX not in model.tags or str(model.status) != "READY":
                continue
            source = Path(location_of(model, int(model.tags[tags.CHECKPOINT_INDEX]), client.tracking_uri))
            target = copied / source.relative_to(home)
            if not source.exists():
                shutil.rmtree(target, ignore_errors=True)
            elif _files(source) != _files(target):
                _copy_tree(source, target, ())
            if source.exists() and _files(source) == _files(target):
                found += 1
            else:
                client.delete_logged_model(model.model_id)
    return found, elsewhere


def _files(folder: Path) -> dict[str, int]:
    """The files of a folder, with their sizes."""
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def _relocate(database: Path, before: Path, after: Path) -> None:
    """Let the locations in a database begin with another folder."""
    if before == after:
        return
    with closing(sqlite3.connect(database)) as connection, connection:
        for table, columns in _LOCATIONS.items():
            for column in columns:
                for old, new in ((f"{before}/", f"{after}/"), (f"{before.as_uri()}/", f"{after.as_uri()}/")):
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                        (new, len(old) + 1, len(old), old),
                    )


def _relink(home: Path, before: Path) -> None:
    """Let links in the folder lead to where their targets are now."""
    for link in [path for path in home.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute() and target.is_relative_to(before):
            link.unlink()
            link.symlink_to(home / target.relative_to(before))


def _interrupt_all(client: MlflowClient) -> None:
    """End the runs that were under way. Their processes write to the folder that was copied, and not to this one."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    while running := client.search_runs(experiments, "attributes.status = 'RUNNING'"):
        for run in running:
            client.set_terminated(run.info.run_id, "KILLED")
            release(client, run.info.run_id, Owner.of(run).number)


def _client(database: Path) -> MlflowClient:
    store = TrackingStore(f"sqlite:///{database}")
    with store.in_use():
        upgrade(database)
    return connect(store)
