"""The process of a Prefect server."""

from __future__ import annotations

import pytest
from filelock import FileLock
from prefect.settings import get_current_settings

from trainlib.flows import _serve as serve


def test_a_second_platform_on_one_database_is_refused_by_name(tmp_path, monkeypatch):
    database = tmp_path / "prefect.db"
    monkeypatch.setattr(serve, "database_file", lambda: database)
    monkeypatch.setattr(serve, "_ANOTHER_ENDS_S", 0.0)
    with serve.alone(), pytest.raises(SystemExit, match=rf"another home .*{database}.*PREFECT_HOME"), serve.alone():
        pass
    with FileLock(f"{database}.up.lock", timeout=0):
        pass


def test_states_of_task_runs_are_written_in_batches_and_before_the_server_ends(monkeypatch):
    for name, value in serve.BATCHED.items():
        monkeypatch.setenv(name, value)
    recorder = type(get_current_settings().server.services.task_run_recorder)()  # it reads the environment
    assert recorder.batch_size > 1, "Prefect does not know these settings by their names any more"
    # Prefect cuts it down to whole seconds, and would write without a pause for zero.
    assert 1 <= int(recorder.flush_interval) == recorder.flush_interval < serve.LINGER_S
