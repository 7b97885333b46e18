"""The MLflow database in trainlib's home folder: brought up to date, and copied while it is in use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from trainlib._schema import templates

__all__ = ["copy_database", "upgrade"]

_COPY_TIMEOUT_S = 60.0


def copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite database as it is at one moment. Other processes may read and write it meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    templates.make_private(target)
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=_COPY_TIMEOUT_S)) as from_,
        closing(sqlite3.connect(target)) as to,
    ):
        from_.backup(to)


@cache
def upgrade(database: Path) -> None:
    """Bring a database that an older MLflow wrote up to date, once in a process. A copy of it stays beside it.

    MLflow itself only says that it is out of date, and what command to type.
    """
    before = _revision(database)
    if before is None:
        return  # there is none yet, or it has no tables
    from mlflow import __version__

    if before == templates.revision("mlflow", __version__):
        return  # known without reading all migrations
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config, _upgrade_db
    from sqlalchemy import create_engine

    uri = f"sqlite:///{database}"
    scripts = ScriptDirectory.from_config(_get_alembic_config(uri))
    if before == scripts.get_current_head() or before not in {script.revision for script in scripts.walk_revisions()}:
        return  # of one that a newer MLflow wrote, MLflow says so
    copy_database(database, database.with_name(f"{database.name}.before-{before}"))
    engine = create_engine(uri)
    try:
        _upgrade_db(engine)
    finally:
        engine.dispose()


def _revision(database: Path) -> str | None:
    """Which of MLflow's migrations a database has been through."""
    if not database.exists():
        return None
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=_COPY_TIMEOUT_S)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:  # no such table
            return None
    return str(row[0]) if row else None
