"""New databases are copies of templates. They have to be what the packages' own migrations would have made."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.longest import LONGEST_S
from trainlib._schema import templates
from trainlib._schema.migrations import installed_version
from trainlib._schema.templates import MAKE, PACKAGES, create, dump, revision

AGAIN = f"If the new tables are wanted, make the templates anew: `{MAKE}`."


def tables(database: Path) -> list[list[str]]:
    """All statements of a database. Their order, and that of a table's constraints, is another one with each migration."""
    return sorted(sorted(line.strip().rstrip(", ") for line in statement.splitlines()) for statement in dump(database))


def columns(database: Path) -> list[tuple[str, int, str]]:
    """The columns of all tables, in their order."""
    asked = (
        "SELECT tables.name, cid, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns"
    )
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute(asked))


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The database of each package, made by its migrations: side by side, each in a process of its own."""
    databases = {package: tmp_path_factory.mktemp(package) / "migrated.db" for package in PACKAGES}
    started = [
        subprocess.Popen([sys.executable, "-m", "trainlib._schema", package, str(database)])
        for package, database in databases.items()
    ]
    assert [process.wait(LONGEST_S) for process in started] == [0, 0]
    return databases


@pytest.mark.parametrize("package", PACKAGES)
def test_a_template_is_what_the_migrations_of_the_installed_version_leave(package, migrated, tmp_path):
    version = installed_version(package)
    database = tmp_path / "new.db"
    assert create(database, package, version), f"the template is not for {package} {version}. {AGAIN}"
    assert tables(database) == tables(migrated[package]), AGAIN
    assert columns(database) == columns(migrated[package]), AGAIN
    assert revision(package, version) in "".join(dump(migrated[package]))
    # Nothing that belongs to one installation: a key, an identity, a time.
    rows = [line for line in dump(database) if line.startswith("INSERT")]
    assert all('"alembic_version"' in row or "'default'" in row for row in rows), rows


@pytest.mark.parametrize("package", PACKAGES)
def test_another_version_and_a_file_that_is_there_are_left_to_the_migrations(package, tmp_path):
    version = installed_version(package)
    assert not create(tmp_path / "new.db", package, f"{version}.post1")
    assert revision(package, "0.1") is None
    there = tmp_path / "there.db"
    there.write_bytes(b"")
    assert not create(there, package, version)
    assert list(tmp_path.iterdir()) == [there]
    assert there.read_bytes() == b""


def test_who_comes_second_leaves_the_database_of_the_first(tmp_path, monkeypatch):
    database = tmp_path / "new.db"
    version = installed_version("mlflow")
    sql = templates.template("mlflow", version)

    def while_another_creates_it(package: str, version: str) -> str | None:
        database.write_bytes(b"the other's")
        return sql

    monkeypatch.setattr(templates, "template", while_another_creates_it)
    assert not create(database, "mlflow", version)
    assert list(tmp_path.iterdir()) == [database]
    assert database.read_bytes() == b"the other's"
