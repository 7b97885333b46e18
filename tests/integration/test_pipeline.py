"""The pipeline: its steps, its cache, and the command that runs it."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.conftest import drivers
from trainlib import Checkpoint
from trainlib._data.sources import inspect_source
from trainlib._registry.models import register, select
from trainlib.cli import main

# By which processes are found that the first demo has started.
MARK = {"STARTED_BY": "the first demo"}
DEMO = "import sys; from trainlib.cli import main; sys.exit(main(['demo', '--epochs', '4']))"


def assert_is_what_a_demo_prints(output: str, home: Path, version: str) -> None:
    """One that makes this version of its model."""
    assert f"1/5 preprocessing {home / 'demo' / 'digits.csv'}" in output
    assert "5/5 registering it as digits" in output
    assert f"digits version {version}, alias 'best'" in output
    assert "Open both UIs    trainlib up" in output
    assert "Traceback" not in output
    assert "WARNING" not in output


@pytest.fixture(scope="module")
def first(tmp_path_factory, home) -> None:
    """The demo on a machine where nothing has been started."""
    with drivers(tmp_path_factory.mktemp("demo")) as driver:
        process = driver(DEMO, own_server=True, own_ray=True, **MARK)
        assert process.wait() == 0, process.output
        assert_is_what_a_demo_prints(process.output, home, version="1")


def has_mark(process: psutil.Process) -> bool:
    """Whether the first demo, or something that it started, has started this process."""
    try:
        return MARK.items() <= process.environ().items()
    except psutil.Error:
        return False  # it ends just now


def test_the_demo_leaves_no_process_and_prefect_knows_how_all_of_it_ended(first):
    """It does not wait for any of that itself."""
    deadline = time.monotonic() + 30
    while left := [process for process in psutil.process_iter(["cmdline"]) if has_mark(process)]:
        assert time.monotonic() < deadline, [process.info for process in left]
        time.sleep(0.1)
    asked = (
        "SELECT flow_run.state_name, task_run.state_name, task_run.name FROM flow JOIN flow_run ON flow_run.flow_id = flow.id "
        "JOIN task_run ON task_run.flow_run_id = flow_run.id WHERE flow.name = 'pipeline' ORDER BY flow_run.created"
    )
    with closing(sqlite3.connect(Path(os.environ["PREFECT_HOME"]) / "prefect.db")) as connection:
        states = connection.execute(asked).fetchall()
    assert len(states) >= 4, states
    assert {state for *both, _ in states for state in both} == {"Completed"}, states


def assert_names_its_data(version: Any, home: Path) -> None:
    """A model version says which data and code it comes from, and brings what was applied to the data."""
    file = home / "demo" / "digits.csv"
    digest = inspect_source(file).digest()
    assert version.tags["trainlib.data.train"].endswith(f"preprocessed from {file}, digest {digest}")
    assert "1257 rows" in version.tags["trainlib.data.train"]
    assert version.tags["trainlib.code"]
    scaler = Checkpoint(version.tags["trainlib.location"]).get_preprocessor()
    assert type(scaler).__name__ == "StandardScaler", "what was applied to the data goes with the model"


def test_the_demo_ends_with_a_registered_model(first, registry, home):
    best = registry.get_model_version_by_alias("digits", "best")
    assert best.version == 1
    assert_names_its_data(best, home)


def test_a_second_demo_is_not_confused_by_the_first(first, registry, home, capfd, monkeypatch):
    """And a score that is not better does not move the alias. It runs in the session's process."""
    monkeypatch.delenv("MAKELEVEL", raising=False)
    assert main(["demo", "--epochs", "4"]) == 0
    second = "".join(capfd.readouterr())
    assert_is_what_a_demo_prints(second, home, version="2")
    versions = registry.search_model_versions("name = 'digits'")
    # Which rank reads which rows is not always the same, and then nor is the score.
    scores = {int(version.version): float(version.tags["trainlib.test.accuracy"]) for version in versions}
    best = 2 if scores[2] > scores[1] else 1
    assert registry.get_model_version_by_alias("digits", "best").version == best
    assert len({version.run_id for version in versions}) == 2
    runs = registry.search_runs([registry.get_experiment_by_name("digits").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert "already preprocessed" in second, "the second run found the first one's data"
    assert_names_its_data(max(versions, key=lambda version: int(version.version)), home)


def test_only_a_better_version_takes_the_alias(registry):
    from trainlib import ScalingConfig, session
    from trainlib.torch import TorchTrainer

    def train_func(config):
        for score in (0.5, 0.9, 0.7):
            session.report({"accuracy": score}, checkpoint=Checkpoint.from_dict({"score": score}))

    result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
    best = select([result.run_id], "accuracy", "max")
    assert (best.score, best.iteration) == (0.9, 2)
    assert Checkpoint(best.location).to_dict()["score"] == 0.9
    assert select([result.run_id], "accuracy", "min").score == 0.5
    assert register(best, "alias-test").promoted
    worse = replace(best, score=0.8)
    assert not register(worse, "alias-test").promoted
    assert not register(replace(best), "alias-test").promoted, "it is no better than itself"
    assert register(replace(best, score=0.95), "alias-test").promoted
    assert registry.get_model_version_by_alias("alias-test", "best").version == 4
    with pytest.raises(LookupError, match="number for 'recall'; their metrics are: accuracy"):
        select([result.run_id], "recall", "max")
    with pytest.raises(ValueError, match="mode is 'best'"):
        select([result.run_id], "accuracy", "best")


def test_the_command_line_helps_and_complains(capfd):
    assert main(["--help"]) == 0
    assert "demo" in capfd.readouterr().out
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        another = free.getsockname()[1]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["up", "--mlflow-port", str(port), "--prefect-port", str(another)]) == 1
    assert f"port {port} is taken" in capfd.readouterr().err
