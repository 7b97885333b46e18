"""The pipeline: its steps, its cache, and the command that runs it."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import drivers
from trainlib import Checkpoint
from trainlib._data.sources import inspect_source
from trainlib._registry.models import register, select
from trainlib.cli import main

DEMO = "import sys; from trainlib.cli import main; sys.exit(main(['demo', '--epochs', '4']))"


def assert_is_what_a_demo_prints(output: str, home: Path, version: str) -> None:
    """One that makes this version of its model."""
    assert f"1/4 preprocessing {home / 'demo' / 'digits.csv'}" in output
    assert "4/4 registering it as digits" in output
    assert f"digits version {version}, alias 'best'" in output
    assert "Open both UIs    trainlib up" in output
    assert "Traceback" not in output
    assert "WARNING" not in output


@pytest.fixture(scope="module")
def first(tmp_path_factory, home) -> None:
    """The demo on a machine where nothing has been started."""
    with drivers(tmp_path_factory.mktemp("demo")) as driver:
        process = driver(DEMO, own_server=True, own_ray=True)
        assert process.wait() == 0, process.output
        assert_is_what_a_demo_prints(process.output, home, version="1")


def assert_names_its_data(version: Any, home: Path) -> None:
    """A model version says which data and code it comes from, and brings what was applied to the data."""
    file = home / "demo" / "digits.csv"
    digest = inspect_source(file).digest()
    assert version.tags["trainlib.data.train"].endswith(f"preprocessed from {file}, digest {digest}")
    assert "1437 rows" in version.tags["trainlib.data.train"]
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
    scores = {int(version.version): float(version.tags["trainlib.metric.accuracy"]) for version in versions}
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
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
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


def test_both_uis_are_served_until_somebody_ends_them(driver):
    """At any ports, and without a server that is left behind."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        prefect, mlflow = (str(each.getsockname()[1]) for each in (one, other))
    command = f"['up', '--prefect-port', '{prefect}', '--mlflow-port', '{mlflow}']"
    served = driver(
        f"import sys; from trainlib.cli import main; sys.exit(main({command}))", own_server=True, own_ray=True
    )
    served.wait_for(lambda: "Ctrl-C ends both." in served.output)
    with urllib.request.urlopen(f"http://127.0.0.1:{prefect}/ui-settings") as answer:
        assert json.load(answer)["api_url"] == f"http://127.0.0.1:{prefect}/api", "its pages ask the right server"
    served.process.terminate()
    assert served.wait() == 128 + signal.SIGTERM
    for port in (prefect, mlflow):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)), timeout=5)
