"""The command line: bad options are named, errors are one line with a code that means something, and help is quick."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trainlib.errors
from trainlib._cli import checks, output, platform, runs, words
from trainlib._cli.app import app
from trainlib._cli.exit_codes import ExitCode, RefusedError, code_of
from trainlib._execution.causes import Cause
from trainlib._registry.listing import CheckpointSummary, RunState, RunSummary
from trainlib.cli import main

ROOT = Path(__file__).parents[3]
COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ([], "command"),
        (["nonsense"], "command"),
        (["demo", "--workers", "x"], "--workers"),
        (["demo", "--workers", "0"], "--workers"),
        (["demo", "--epochs=-1"], "--epochs"),
        (["up", "--prefect-port", "70000"], "--prefect-port"),
        (["up", "--mlflow-port=-1"], "--mlflow-port"),
        (["logs", "--lines=-1"], "--lines"),
        (["logs", "--follow", "--json"], "--json"),
        (["up", "--json"], "--json"),
        (["backup", ""], "FOLDER"),
        (["restore", "a\0b"], "FOLDER"),
        (["stacks", " "], "RUN"),
        (["rerun", "x", "--name", ""], "--name"),
        (["show"], "RUN"),
        (["runs", "--status", "odd"], "--status"),
        (["runs", "--limit", "0"], "--limit"),
        (["checkpoints", "x", "--limit", "many"], "--limit"),
        (["cancel", "x", "--timeout=-1"], "--timeout"),
        (["fork"], "RUN|CHECKPOINT"),
        (["promote", "model", "--version", "0"], "--version"),
        (["promote", "m-" + "0" * 32], "--model"),
        (["promote", "model", "--model", "other"], "--model"),
        (["rollback", "model", "--alias", ""], "--alias"),
        (["doctor", "--jason"], "--jason"),
    ],
)
def test_a_bad_option_is_named(arguments, option, capsys):
    assert main(arguments) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("trainlib")
    assert option in line


# No text with which any of these would begin to work.
bad_numbers = st.text().filter(lambda text: not _is_number(text)) | st.integers(max_value=-1).map(str)
NUMBERS = [
    *("demo --workers", "demo --epochs", "up --prefect-port", "up --mlflow-port", "logs --lines"),
    *("runs --limit", "checkpoints --limit", "cancel RUN --timeout", "promote MODEL --version"),
]


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False


@given(bad_numbers, st.sampled_from(NUMBERS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_not_a_number_is_refused(capsys, text, where):
    *command, option = where.split()
    assert main([*command, f"{option}={text}"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"'{option}'" in said
    assert len(said.splitlines()) == 1


unprintable = st.text().filter(lambda text: not text.strip() or not text.isprintable())
NAMES = [
    *("show RUN", "resume RUN", "rerun RUN", "cancel RUN", "stacks RUN", "checkpoints RUN", "rollback MODEL"),
    *("fork RUN|CHECKPOINT", "promote MODEL|CHECKPOINT", "backup FOLDER", "restore FOLDER", "logs SERVICE"),
    *(
        "fork x --name",
        "rerun x --name",
        "promote x --alias",
        "rollback x --alias",
        "promote x --model",
        "runs --experiment",
    ),
]


@given(unprintable, st.sampled_from(NAMES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_name_that_nobody_can_see_is_refused(capsys, text, where):
    *command, what = where.split()
    arguments = [*command, f"{what}={text}"] if what.startswith("--") else [*command, "--", text]
    assert main(arguments) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert f"'{what}'" in line


@given(st.sampled_from(COMMANDS), st.text(min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_unknown_option_is_named_by_every_command(capsys, command, text):
    option = f"--x{re.sub('[^a-z]', '', text)}"
    assert main([command, option]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"trainlib {command}: ")
    assert option in line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command, capsys):
    assert main([command, "--help"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert f"Usage: trainlib {command}" in shown
    assert "--json" in shown


def test_help_and_versions_import_nothing_heavy():
    code = (
        "import sys; from trainlib.cli import main; main(['--help']); main(['--version']); main(['fork', '--help']); "
        "print([m for m in ('ray', 'mlflow', 'prefect', 'torch', 'tensorflow', 'pandas', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *shown, imported = done.stdout.splitlines()
    assert ast.literal_eval(imported) == []
    named = {line.split()[0] for line in shown if re.fullmatch(r"\w+ \d+\.\S+", line)}
    assert {"trainlib", "Python", "Ray", "Prefect", "MLflow"} <= named
    assert "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found; 4 refused" in done.stdout


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (
            ExitCode.NOT_FOUND,
            ["CheckpointNotFoundError", "DataNotFoundError", "ModelNotFoundError", "RunNotFoundError"],
        ),
        (ExitCode.REFUSED, ["FormatError", "RunInUseError", "RunLostError", "RunNotReachableError"]),
        (ExitCode.UNREACHABLE, ["CapacityError", "ConnectionFailedError", "RayLostError"]),
        (ExitCode.FAILED, ["TrainingFailedError", "SweepFailedError", "InvalidArgumentError", "ScoreNotReportedError"]),
    ],
)
def test_errors_have_codes_that_mean_something(code, names):
    assert {code_of(_made(name)) for name in names} == {code}


def test_every_error_of_trainlib_has_a_code_and_a_defect_has_none():
    assert all(code_of(_made(name)) is not None for name in trainlib.errors.__all__)
    assert code_of(RefusedError("no")) is ExitCode.REFUSED
    assert code_of(FileExistsError("there")) is ExitCode.REFUSED
    assert code_of(ValueError("odd")) is ExitCode.FAILED
    for defect in (KeyError("x"), IndexError("x"), AssertionError(), TypeError("x"), RuntimeError("x")):
        assert code_of(defect) is None, "a defect shows its traceback"


def _made(name: str) -> Exception:
    error = getattr(trainlib.errors, name)
    if error is trainlib.errors.TrainingFailedError:
        return error("why", cause=Cause.USER)
    return error(range(2), "host") if error is trainlib.errors.PortsTakenError else error("why")


def test_an_error_is_one_line_without_a_password(monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ada:pw@127.0.0.1:9")
    assert main(["runs"]) == ExitCode.UNREACHABLE
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(
        "trainlib runs: no MLflow server answers at MLFLOW_TRACKING_URI=http://ada:********@127.0.0.1:9"
    )
    assert said.out == ""


def test_a_table_is_not_cut_where_nobody_sees_the_edge(capsys):
    output.table(["name", "id"], [["digits [red]", "0" * 400], ["x", "1"]], folded=("id",))
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "id"]
    assert first == "digits [red]  " + "0" * 400
    assert second.split() == ["x", "1"]


def test_tables_fit_a_terminal_of_80_columns(monkeypatch, capsys):
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    moment = datetime(2026, 11, 17, 11, 22, tzinfo=UTC)
    metrics = {"validation/accuracy": 0.98765, "validation/loss": 0.12345, "epoch": 12.0}
    name = "a long name · fork of 01234567"
    run = RunSummary("0123456789abcdef" * 2, name, "training", "e", RunState.FINISHED, moment, moment, metrics)
    runs._show_runs([run], (), "")
    runs._show_checkpoints([CheckpointSummary("m-" + "0" * 32, run.id, 3, None, metrics, moment, "/folder")])
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    for whole in ("finished", f"{words.moment(moment)}", "0.0 s", "01234567", "m-" + "0" * 32):
        assert re.search(rf"(^| ){re.escape(whole)}($| )", shown, re.MULTILINE), shown


def test_the_last_lines_of_a_log(tmp_path):
    log = tmp_path / "ray.log"
    assert platform.last_lines(log, 2) == []
    log.write_bytes(b"one\ntwo\n\xffthree\nfour")
    assert platform.last_lines(log, 2) == ["\ufffdthree", "four"]
    assert platform.last_lines(log, 0) == []


def test_a_log_is_followed(tmp_path):
    log = tmp_path / "ray.log"
    log.write_text("before\n")

    def write() -> None:
        with open(log, "a") as file:
            file.write("one\ntwo\nincompl")

    threading.Timer(0.1, write).start()
    added = platform._added({"ray": log, "later": tmp_path / "later.log"})
    assert [next(added), next(added)] == [("ray", "one"), ("ray", "two")]


def test_ctrl_c_and_defects(monkeypatch):
    def interrupted() -> list[checks.Finding]:
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "examine", interrupted)
    assert main(["doctor"]) == ExitCode.INTERRUPTED
    monkeypatch.setattr(checks, "examine", lambda: [][0])
    with pytest.raises(IndexError):
        main(["doctor"])


def test_completion_knows_the_commands(monkeypatch, capsys):
    monkeypatch.setenv("_TRAINLIB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "trainlib ro")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["rollback"]


def test_json_has_no_nan(capsys):
    output.emit({"loss": float("nan"), "best": [float("inf"), 1.5]}, True, print)
    assert json.loads(capsys.readouterr().out) == {"loss": None, "best": [None, 1.5]}


def test_the_readme_lists_every_command_and_every_exit_code():
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("\n## The command line\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(?:trainlib )?([a-z]+)\b[^`]*`", section))
    assert set(COMMANDS) <= listed
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert codes == {int(code) for code in ExitCode}
