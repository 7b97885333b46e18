"""The command line on what real trainings have recorded."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from trainlib import Checkpoint, DataParallelTrainer, FailureConfig, Result, RunConfig, ScalingConfig, session, tune
from trainlib._cli.exit_codes import ExitCode
from trainlib._registry.models import register, select
from trainlib.cli import main
from trainlib.tune import ResultGrid, TuneConfig, Tuner

ROOT = Path(__file__).parents[2]


def train_func(config: dict) -> None:
    checkpoint = session.get_checkpoint()
    state = checkpoint.to_dict() if checkpoint else {"step": 0, "weight": 0.0}
    print("this line is not JSON")
    for step in range(state["step"], config["model"]["steps"]):
        state = {"step": step + 1, "weight": state["weight"] + config["lr"]}
        session.report({"weight": state["weight"]}, checkpoint=Checkpoint.from_dict(state))
        if config["fails"] and not Path(config["fails"]).exists():
            Path(config["fails"]).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def trial(config: dict) -> None:
    session.report({"score": config["x"]})


@dataclass
class Recorded:
    training: Result
    """In its first attempt, the worker is killed after a checkpoint."""
    sweep: ResultGrid


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recorded:
    config = {
        "lr": 1.0,
        "model": {"steps": 3},
        "api_key": "very secret",
        "fails": str(tmp_path_factory.mktemp("cli") / "failed"),
    }
    training = DataParallelTrainer(
        train_func,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=1),
        run_config=RunConfig(
            name="weights", experiment_name="cli", verbose=0, failure_config=FailureConfig(max_failures=1)
        ),
    ).fit()
    sweep = Tuner(
        trial,
        param_space={"x": tune.grid_search([1.0, 2.0])},
        tune_config=TuneConfig(metric="score", mode="max"),
        run_config=RunConfig(name="a sweep", experiment_name="cli", verbose=0),
    ).fit()
    return Recorded(training, sweep)


class CommandLine:
    """Calls commands, and reads what they print."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: str, code: ExitCode = ExitCode.DONE) -> str:
        """Gives what was printed on standard output, or on standard error if it fails."""
        self._capfd.readouterr()
        assert main(arguments) == code, self._capfd.readouterr()
        shown = self._capfd.readouterr()
        return shown.out if code is ExitCode.DONE else shown.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def cli(capfd) -> CommandLine:
    return CommandLine(capfd)


def test_runs_are_listed_newest_first(recorded, cli):
    runs = cli.json("runs", "--experiment", "cli")["runs"]
    assert [(run["name"], run["kind"], run["status"]) for run in runs[-2:]] == [
        ("a sweep", "sweep", "finished"),
        ("weights", "training", "finished"),
    ]
    training = runs[-1]
    assert (training["id"], training["metrics"]) == (recorded.training.run_id, {"weight": 3.0})
    assert training["started"] < training["ended"]
    assert training["seconds"] > 0
    with_trials = cli.json("runs", "--experiment", "cli", "--trials", "--limit", "1000")["runs"]
    assert [run["kind"] for run in with_trials].count("trial") == 2
    assert cli.json("runs", "--experiment", "cli", "--status", "failed") == {"runs": []}
    assert len(cli.json("runs", "--limit", "1")["runs"]) == 1
    header, *rows = cli("runs", "--experiment", "cli", "--status", "finished").splitlines()
    assert header.split() == ["name", "status", "started", "took", "metrics", "id"]
    assert rows[-1].split()[-2:] == ["weight=3", recorded.training.run_id], "ids are whole where nobody sees the edge"
    assert "there is no experiment 'nobody'; there are: " in cli(
        "runs", "--experiment", "nobody", code=ExitCode.NOT_FOUND
    )


def test_a_run_is_shown_with_its_attempts_and_checkpoints(recorded, cli):
    shown = cli.json("show", recorded.training.run_id[:8])
    assert shown["id"] == recorded.training.run_id
    assert shown["settings"]["model.steps"] == "3"
    assert shown["settings"]["api_key"] == "********"
    assert not [name for name in shown["settings"] if name.startswith("trainlib.")]
    assert [(each["number"], each["outcome"], each["rank"]) for each in shown["attempts"]] == [
        (1, "worker", 0),
        (2, "finished", None),
    ]
    assert "killed" in shown["attempts"][0]["message"]
    assert "resumed_from" in shown["attempts"][1]
    assert [each["iteration"] for each in shown["checkpoints"]] == [3, 2, 1]
    assert shown["links"]["mlflow"] == recorded.training.run_url
    assert recorded.training.flow_run_id in shown["links"]["prefect"]
    text = cli("show", "weights")
    for each in (
        shown["attempts"][0]["message"].splitlines()[0],
        "model.steps",
        shown["checkpoints"][0]["id"],
        shown["links"]["prefect"],
    ):
        assert each in text
    assert "very secret" not in text
    sweep = cli.json("show", "a sweep")
    assert {each["metrics"]["score"] for each in sweep["trials"]} == {1.0, 2.0}
    assert cli.json("checkpoints", "weights")["checkpoints"] == shown["checkpoints"]
    assert len(cli.json("checkpoints", "--limit", "2")["checkpoints"]) == 2
    assert shown["checkpoints"][0]["location"] in cli("checkpoints", "weights")
    assert "trainlib show: no training named 'nobody'" in cli("show", "nobody", code=ExitCode.NOT_FOUND)


def test_a_training_is_forked_from_any_checkpoint_with_other_settings(recorded, cli, registry, monkeypatch):
    first = cli.json("checkpoints", "weights")["checkpoints"][-1]
    missing = cli("fork", "weights", "--set", "lr=10", code=ExitCode.REFUSED)
    assert "api_key was not saved, being secret" in missing
    assert "trainlib fork weights --secret api_key=VARIABLE" in missing
    monkeypatch.setenv("API_KEY", "very secret")
    key = ("--secret", "api_key=API_KEY")
    unknown = cli("fork", "weights", *key, "--set", "rate=1", code=ExitCode.USAGE)
    assert "no key 'rate'. Its keys: lr, model.steps, api_key, fails" in unknown
    newest = cli.json("fork", "weights", *key, "--set", "lr=10", "--set", "model.steps=4", "--name", "from the newest")
    assert (newest["name"], newest["metrics"]) == ("from the newest", {"weight": 13.0})
    assert newest["forked_from"] == cli.json("checkpoints", "weights")["checkpoints"][0]["id"]
    assert newest["settings"]["lr"] == "10"
    assert newest["experiment"] == "cli"
    cli("fork", first["id"], *key, "--set", "lr=100")
    (forked,) = registry.search_runs(
        [registry.get_run(recorded.training.run_id).info.experiment_id], "attributes.run_name LIKE 'weights · fork of%'"
    )
    assert forked.data.metrics == {"weight": 201.0}
    assert "has no checkpoint to start from" in cli("fork", "a sweep", code=ExitCode.NOT_FOUND)
    assert "no checkpoint has the id" in cli("fork", "m-" + "0" * 32, code=ExitCode.NOT_FOUND)


def test_an_alias_is_moved_and_moved_back(recorded, cli, registry):
    newest, middle, _ = cli.json("checkpoints", "weights")["checkpoints"]
    name = "weights-model"
    assert f"no registered model is called {name!r}" in cli("promote", name, code=ExitCode.NOT_FOUND)
    moved = cli.json("promote", middle["id"], "--model", name)
    assert moved == {"model": name, "alias": "best", "version": "1", "previous": None}
    assert cli.json("promote", newest["id"], "--model", name)["version"] == "2"
    assert cli.json("promote", middle["id"], "--model", name)["version"] == "1", "it is a version already"
    assert cli.json("promote", name, "--version", "2", "--alias", "best")["previous"] == "1"
    assert registry.get_model_version(name, "2").tags["trainlib.metric.weight"] == "3.0"
    # It was 1, 2, 1, 2.
    assert [cli.json("rollback", name)["version"] for _ in range(3)] == ["1", "2", "1"]
    assert str(registry.get_model_version_by_alias(name, "best").version) == "1"
    assert "no version that had it before is known" in cli("rollback", name, code=ExitCode.NOT_FOUND)
    # Somebody moves it in the UI: that was not written down, but it can be taken back.
    registry.set_registered_model_alias(name, "best", "2")
    assert "points to version 1 (before: version 2)" in cli("rollback", name)
    # What registering moves can be moved back, too.
    best = select([recorded.training.run_id], "weight", "max")
    assert [register(replace(best, score=score), "registered").promoted for score in (1.0, 2.0)] == [True, True]
    assert cli.json("rollback", "registered")["version"] == "1"
    assert "has no alias 'odd'; its aliases: best" in cli("rollback", name, "--alias", "odd", code=ExitCode.NOT_FOUND)
    assert "has no version 9; it has 1, 2" in cli("promote", name, "--version", "9", code=ExitCode.NOT_FOUND)


CANCELLED_TWICE = """
    from pathlib import Path
    from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session
    from trainlib.errors import TrainingCancelledError

    def train_func(config):
        checkpoint = session.get_checkpoint()
        first = checkpoint.to_dict()["step"] + 1 if checkpoint else 0
        for step in range(first, 100000):
            session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))
            Path(config["began"]).touch()
            if Path(config["end"]).exists():
                return
            time.sleep(0.05)

    def fit(name):
        DataParallelTrainer(
            train_func,
            train_loop_config={"began": f"{name} began", "end": "end"},
            scaling_config=ScalingConfig(num_workers=1),
            run_config=RunConfig(name=name, experiment_name="cli"),
        ).fit()

    import os, time
    os.chdir(Path(__file__).parent)
    try:
        fit("cancelled by Prefect")
    except TrainingCancelledError:
        fit("ended by a signal")
"""


def test_a_training_is_cancelled_and_resumed(recorded, cli, driver, tmp_path):
    source = CANCELLED_TWICE.replace('f"{name} began"', f'"{tmp_path}/" + name').replace(
        '"end": "end"', f'"end": "{tmp_path}/end"'
    )
    script = driver(source)
    script.wait_for((tmp_path / "cancelled by Prefect").exists)
    assert cli.json("runs", "--status", "running")["runs"][0]["name"] == "cancelled by Prefect"
    assert "is being run by process" in cli("resume", "cancelled by Prefect", code=ExitCode.REFUSED)
    cancelled = cli.json("cancel", "cancelled by Prefect")
    assert (cancelled["by"], cancelled["status"]) == ("prefect", "killed")
    assert "does not run: it is killed" in cli("cancel", "cancelled by Prefect", code=ExitCode.REFUSED)

    script.wait_for((tmp_path / "ended by a signal").exists)
    with temporary_settings(restore_defaults=[PREFECT_API_URL]):
        assert "its process got a SIGTERM; it ended after" in cli("cancel", "ended by a signal")
    assert script.wait() != 0

    (tmp_path / "end").touch()
    resumed = cli.json("resume", "cancelled by Prefect")
    assert (resumed["id"], resumed["status"]) == (cancelled["id"], "finished")
    assert len(resumed["attempts"]) == 2
    assert "has finished. To go on with other settings" in cli("resume", cancelled["id"], code=ExitCode.REFUSED)


def test_the_json_in_the_readme_is_what_is_printed(recorded, cli):
    section = (ROOT / "README.md").read_text().partition("\n## The command line\n")[2].partition("\n## ")[0]
    (command,) = re.findall(r"`trainlib ([^`]* --json)`", section)
    (example,) = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    (shown,) = cli.json(*shlex.split(command.removesuffix(" --json")))["runs"]
    (documented,) = json.loads(example)["runs"]
    assert list(shown) == list(documented)
    assert {key: type(value) for key, value in shown.items()} == {key: type(value) for key, value in documented.items()}
