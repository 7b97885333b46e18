"""A home folder is copied while it is used, put back elsewhere, and upgraded or refused by its version."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.integration.test_runs_in_the_registry import opened
from trainlib import CheckpointConfig, RunConfig, cli
from trainlib import _storage as storage
from trainlib._backup import back_up, put_back
from trainlib._cli.exit_codes import ExitCode
from trainlib._format import FORMAT
from trainlib._home import FORMAT_FILE
from trainlib._registry import tags
from trainlib._registry.client import connect
from trainlib._registry.database import _revision
from trainlib._registry.finding import load_trainer
from trainlib._registry.opening import open_run
from trainlib._registry.run import RegisteredRun
from trainlib._registry.store import current_store
from trainlib.errors import FormatError

FILES = 5
PRIVATE = [0o700, 0o600, 0o600]


@pytest.fixture
def own_home(tmp_path, monkeypatch) -> Path:
    """A home of the test's own, with a blank in its name."""
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path / "my home"))
    return tmp_path / "my home"


def begin() -> RegisteredRun:
    config = RunConfig(name="digits", checkpoint_config=CheckpointConfig(num_to_keep=2))
    arguments = {"default_name": "", "kind": "training", "run": None, "flow_run_id": None, "tags": {}}
    return open_run(config, store=current_store(), **arguments)


def save_checkpoint(run: RegisteredRun, index: int, folder: Path) -> None:
    """As a training does: the files, then the entry; of earlier ones, two are kept."""
    staged = folder / str(index) / "staged"
    staged.mkdir(parents=True)
    for number in range(FILES):
        (staged / f"{number}.bin").write_bytes(bytes([index % 256]) * 20_000)
    facts = {"index": index, "iteration": index, "metrics": {"loss": 1.0}, "score": None, "seconds": 1.0}
    pending = run.checkpoints.create_in_background(**facts)

    def upload(source: str, location: str) -> None:
        storage.upload(Path(source), location)

    run.checkpoints.commit_in_background(index, pending, str(staged), upload=upload, flush_metrics=lambda: None)
    while run.checkpoints.wait(timeout=5.0):
        pass
    run.checkpoints.kept.prune()


def test_a_home_in_use_is_copied_and_goes_on_elsewhere(own_home, tmp_path, monkeypatch):
    run = begin()
    ends, index = threading.Event(), 0

    def train() -> None:
        nonlocal index
        while not ends.is_set():
            save_checkpoint(run, index, tmp_path / "staging")
            index += 1
            ends.wait(1.5)

    training = threading.Thread(target=train)
    training.start()
    prefect = own_home / "prefect" / "prefect.db"
    prefect.parent.mkdir(parents=True)
    with closing(sqlite3.connect(prefect)) as connection, connection:
        connection.execute("CREATE TABLE flow_run (name TEXT)")
        connection.execute("INSERT INTO flow_run VALUES ('brave-fox')")
    while index < 3:
        assert training.is_alive()
        time.sleep(0.05)
    copies = [tmp_path / f"backup-{number}" for number in range(3)]
    for copy in copies:
        back_up(copy, own_home, prefect)
        before, deadline = index, time.monotonic() + 20
        while index < before + 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    ends.set()
    training.join()

    for copy in copies:
        assert [stat.S_IMODE((copy / name).stat().st_mode) for name in (".", "mlflow.db", "prefect.db")] == PRIVATE
        (copy / "home").chmod(0o755)
        elsewhere = tmp_path / f"restored from {copy.name}"
        restored = put_back(copy, elsewhere, elsewhere / "prefect" / "prefect.db")
        assert restored.checkpoints >= 1
        private = (elsewhere, elsewhere / "mlflow.db", elsewhere / "prefect" / "prefect.db")
        assert [stat.S_IMODE(path.stat().st_mode) for path in private] == PRIVATE
        monkeypatch.setenv("TRAINLIB_HOME", str(elsewhere))
        again = begin()
        assert again.run_id == run.run_id, "it counts as interrupted, also while the first one lives"
        assert again.checkpoints.newest() is not None
        for saved in again.recorded.checkpoints.saved:
            folder = Path(saved.location)
            assert folder.is_relative_to(elsewhere)
            written = [(folder / f"{number}.bin").read_bytes() for number in range(FILES)]
            assert written == [bytes([saved.index % 256]) * 20_000] * FILES
        again.close("FINISHED")
        with closing(sqlite3.connect(elsewhere / "prefect" / "prefect.db")) as connection:
            assert connection.execute("SELECT name FROM flow_run").fetchall() == [("brave-fox",)]
    monkeypatch.setenv("TRAINLIB_HOME", str(own_home))
    with pytest.raises(FileExistsError, match="is not empty: choose a new folder"):
        back_up(copies[0], own_home, prefect)
    with pytest.raises(FileExistsError, match="is not empty: set TRAINLIB_HOME"):
        put_back(copies[0], own_home, prefect)
    (copies[1] / "backup.json").unlink()
    with pytest.raises(FileNotFoundError, match="is not a complete backup"):
        put_back(copies[1], tmp_path / "new", None)
    manifest = copies[2] / "backup.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(FormatError, match=r"was written by a newer trainlib \(format 99\)"):
        put_back(copies[2], tmp_path / "new", None)
    run.close("FINISHED")


def test_the_command_line_copies_a_home_and_says_what_is_missing(home, tmp_path, monkeypatch, capsys):
    opened("to-copy").close("FINISHED")
    assert cli.main(["backup", str(tmp_path / "copy")]) == 0
    assert f"{home} is copied to {tmp_path / 'copy'}" in capsys.readouterr().out
    assert cli.main(["restore", str(tmp_path / "nothing")]) == ExitCode.NOT_FOUND
    assert "is not a complete backup" in capsys.readouterr().err


def test_a_database_of_an_older_mlflow_is_upgraded(own_home, tmp_path):
    from alembic import command
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine

    own_home.mkdir()
    database = own_home / "mlflow.db"
    Base.metadata.create_all(create_engine(f"sqlite:///{database}"))
    config = _get_alembic_config(f"sqlite:///{database}")
    newest, older, *_ = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    command.upgrade(config, older)
    assert _revision(database) == older
    connect(current_store())
    assert _revision(database) == newest
    assert _revision(own_home / f"mlflow.db.before-{older}") == older
    assert json.loads((own_home / FORMAT_FILE).read_text()) == {"format": FORMAT}

    (own_home / FORMAT_FILE).write_text('{"format": 99}')
    with pytest.raises(
        FormatError, match=r"my home was written by a newer trainlib \(format 99\), and this one reads up to"
    ):
        connect(current_store())


def test_what_a_newer_trainlib_wrote_is_refused_by_name(registry: MlflowClient):
    run = opened("from-the-future")
    run.close("KILLED")
    registry.set_tag(run.run_id, tags.FORMAT, "99")
    for attempt in (lambda: opened("from-the-future"), lambda: load_trainer("from-the-future")):
        with pytest.raises(FormatError, match=r"the run 'from-the-future' \(MLflow run .*newer trainlib \(format 99\)"):
            attempt()
    registry.set_tag(run.run_id, tags.FORMAT, str(FORMAT))
