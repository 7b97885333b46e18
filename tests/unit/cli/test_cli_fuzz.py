"""Whatever is passed to any option of any command: an exit code that means something, and one line that says why. Never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command

from trainlib._cli.app import app
from trainlib._cli.exit_codes import ExitCode
from trainlib.cli import main

# What they start would go on after the test. What they refuse is tested in test_cli.py.
STARTING = {"up", "demo"}
COMMANDS = {name: command for name, command in get_command(app).commands.items() if name not in STARTING}
NEEDED = {
    name: [each.name for each in command.params if each.param_type_name == "argument" and each.required]
    for name, command in COMMANDS.items()
}
# An option as it is spelled, or an argument by its name.
PLACES = [
    (name, each.opts[0])
    for name, command in COMMANDS.items()
    for each in command.params
    if not getattr(each, "is_flag", False)
]

given_texts = st.sampled_from(
    ["", " ", "..", "\0", "-1", "0", "1e999", "nan", "inf", "9" * 400, "x" * 5000, "models:/", "models:/a@", "models:/a/9" + "9" * 30,
     "a=b=c", "=", "a.b.c=1", "s3://key:hunter2@bucket", "'; DROP TABLE runs; --", "%", "m-" + "0" * 32, "\udcff", "[red]x[/red]", "a:b:c"]
) | st.text() | st.integers().map(str)  # fmt: skip


@pytest.fixture(scope="module")
def an_empty_home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINLIB_HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(tmp_path_factory.mktemp("here"))
        main(["runs"])
        yield


@pytest.mark.parametrize(("command", "place"), PLACES, ids=lambda value: value.lstrip("-"))
@given(text=given_texts)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_option_takes_a_text_or_says_why_not(an_empty_home, capsys, command, place, text):
    options = [f"{place}={text}"] if place.startswith("-") else []
    arguments = [text if name == place else "a run" for name in NEEDED[command]]
    if place not in NEEDED[command] and not options:
        arguments.append(text)
    code = main([command, *options, "--", *arguments])
    said = capsys.readouterr().err
    assert code in set(ExitCode)
    assert "Traceback" not in said
    assert "hunter2" not in said
    if code != ExitCode.DONE:
        assert said.startswith(f"trainlib {command}: ")
    if code == ExitCode.USAGE and options:
        assert place in said.splitlines()[0]
