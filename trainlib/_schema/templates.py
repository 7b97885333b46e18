"""Creating a database from its template, if the template was made by the very version that is installed."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

__all__ = ["MAKE", "PACKAGES", "create", "dump", "make_private", "revision", "template"]

PACKAGES = ("mlflow", "prefect")
MAKE = "python -m trainlib._schema"
"""The command that makes all templates anew, for the versions that are installed."""


def create(database: Path, package: str, version: str) -> bool:
    """Create a database file that does not exist yet, with the tables that this version of a package would create.

    Returns whether it did. If not, the package's own migrations have to: there is a file already, or the template is for
    another version. Whoever looks at the file finds all of it, or none.
    """
    if database.exists() or (sql := template(package, version)) is None:
        return False
    aside = database.with_name(f".{database.name}.{os.getpid()}")
    try:
        make_private(aside)
        with closing(sqlite3.connect(aside)) as connection:
            connection.executescript(sql)
        os.link(aside, database)  # unlike a rename, it never replaces what somebody else has created meanwhile
    except (OSError, sqlite3.Error):
        return False  # somebody has; or it cannot be done here, and the package, which tries next, says why
    finally:
        aside.unlink(missing_ok=True)
    return True


def make_private(database: Path) -> None:
    """Let nobody but the user read a database file, which is made now if there is none. Files of other users stay as they are.

    What SQLite puts beside it gets the same permissions.
    """
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, 0o600))
    found = database.stat()
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        database.chmod(0o600)


def template(package: str, version: str) -> str | None:
    """The SQL that creates a package's empty database; None if it was made by another version."""
    sql = files(__package__).joinpath(f"{package}.sql").read_text()
    return sql if sql.startswith(f"-- {package} {version}:") else None


def revision(package: str, version: str) -> str | None:
    """The newest migration that this version of a package has; None if there is no template that tells."""
    sql = template(package, version)
    found = re.search(r'^INSERT INTO "alembic_version" VALUES\(\'(\w+)\'\);$', sql or "", re.MULTILINE)
    return found[1] if found else None


def dump(database: Path) -> Iterator[str]:
    """The SQL of a database, statement by statement: its tables and indexes, and the rows in them."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        yield from connection.iterdump()
