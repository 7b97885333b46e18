"""Databases have what nobody else may read: Prefect's even has the key of its Secret blocks."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import prefect
import pytest

from trainlib._home import require_home
from trainlib._registry.database import copy_database
from trainlib._schema import templates
from trainlib.flows import _serve


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_the_users_alone(tmp_path):
    require_home(tmp_path / "home")
    assert mode_of(tmp_path / "home") == 0o700


def test_a_database_is_the_users_alone_and_so_is_a_copy(tmp_path):
    database, copy = tmp_path / "prefect.db", tmp_path / "copies" / "prefect.db"
    assert templates.create(database, "prefect", prefect.__version__)
    database.chmod(0o644)  # as one that Prefect itself has made
    copy_database(database, copy)
    assert mode_of(copy) == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


@pytest.mark.parametrize("before", ["nothing", "another version's", "one that all can read"])
def test_prefects_database_is_the_users_alone(tmp_path, before, monkeypatch):
    database = tmp_path / "prefect" / "prefect.db"
    if before == "another version's":
        monkeypatch.setattr(prefect, "__version__", "0.0")
    elif before == "one that all can read":
        database.parent.mkdir()
        templates.create(database, "prefect", prefect.__version__)
        database.chmod(0o644)
    monkeypatch.setattr(_serve, "database_file", lambda: database)  # Prefect reads the setting once in a process
    with (
        _serve.one_at_a_time(),
        closing(sqlite3.connect(database)) as connection,  # as Prefect does, which creates it if it is not there
        connection,
    ):
        connection.execute("CREATE TABLE something (name)")
    assert mode_of(database) == 0o600
    assert mode_of(database.parent) == (0o755 if before == "one that all can read" else 0o700)
