"""Bad options are named, and nothing starts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainlib.cli import main


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
        (["backup", ""], "folder"),
        (["restore", "a\0b"], "folder"),
        (["stacks", " "], "run"),
        (["rerun", "x", "--name", ""], "--name"),
    ],
)
def test_a_bad_option_is_named(arguments, option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert option in capsys.readouterr().err.splitlines()[-1]


# No text with which any of these would begin to work.
bad_numbers = st.text().filter(lambda text: not text.isdecimal()) | st.integers(max_value=0).map(str)


@given(bad_numbers, st.sampled_from(["demo --workers", "demo --epochs", "up --prefect-port", "up --mlflow-port"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_not_a_number_is_refused(capsys, text, where):
    command, option = where.split()
    with pytest.raises(SystemExit) as ended:
        main([command, f"{option}={text}"])
    assert ended.value.code == 2
    assert f"argument {option}" in capsys.readouterr().err
