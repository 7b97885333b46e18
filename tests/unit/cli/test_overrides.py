"""Settings that are changed on the command line."""

from __future__ import annotations

import contextlib

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from trainlib._cli import continuing
from trainlib._cli.exit_codes import RefusedError
from trainlib._cli.overrides import changed, with_secrets
from trainlib._continuing.config_changes import hidden_keys
from trainlib._secrets import HiddenSecret, without_secrets

CONFIG = {"lr": 0.1, "model": {"depth": 2, "kind": "mlp"}, "a.b": 1, "note": None}


def test_values_are_json_and_dots_reach_into_dicts():
    changes = ["lr=1e-3", 'model={"depth": 3}', "model.depth=[4, 5]", "a.b=true", "note=as it is"]
    assert changed(CONFIG, changes) == {"lr": 0.001, "model": {"depth": [4, 5]}, "a.b": True, "note": "as it is"}
    assert changed(CONFIG, ["model.kind=cnn", "lr=null"])["model"]["kind"] == "cnn"
    assert CONFIG["model"] == {"depth": 2, "kind": "mlp"}, "the old config stays"
    assert changed(None, []) == {}


def test_a_key_is_added_only_if_asked_for():
    with pytest.raises(
        typer.BadParameter, match=r"no key 'rl'. Its keys: lr, model.depth, model.kind, a.b, note. To add"
    ):
        changed(CONFIG, ["rl=1"])
    with pytest.raises(typer.BadParameter, match=r"no key 'model.width'"):
        changed(CONFIG, ["model.width=1"])
    added = changed(CONFIG, ["optimizer.name=adam", "optimizer.beta=0.9", "model.width=8"], add=True)
    assert added["optimizer"] == {"name": "adam", "beta": 0.9}
    assert added["model"] == {"depth": 2, "kind": "mlp", "width": 8}
    with pytest.raises(typer.BadParameter, match=r"'lr' is 0.1, which has no keys"):
        changed(CONFIG, ["lr.max=1"], add=True)


def test_a_typing_error_in_a_number_is_no_text():
    with pytest.raises(typer.BadParameter, match=r"'O.01' is not JSON, and would take the place of 0.1"):
        changed(CONFIG, ["lr=O.01"])
    assert changed(CONFIG, ['lr="O.01"'])["lr"] == "O.01"


@given(st.text(), st.booleans())
def test_any_change_is_made_or_refused(text, add):
    with contextlib.suppress(typer.BadParameter):
        assert isinstance(changed(CONFIG, [text], add=add), dict)


def test_secrets_come_from_the_environment(monkeypatch):
    saved = without_secrets({"lr": 0.1, "db": {"password": "pw", "user": "ada"}, "api_key": "k"})
    assert hidden_keys(saved) == ["db.password", "api_key"]
    monkeypatch.setenv("DB_PASSWORD", "again")
    filled = with_secrets(saved, ["db.password=DB_PASSWORD"])
    assert filled == {"lr": 0.1, "db": {"password": "again", "user": "ada"}, "api_key": HiddenSecret()}
    for bad, why in (
        ("db.password", "is incomplete"),
        ("lr=DB_PASSWORD", r"no secret has the key 'lr'. What was not saved: db.password, api_key"),
        ("api_key=NOT_SET_ANYWHERE", "'NOT_SET_ANYWHERE' is not set"),
    ):
        with pytest.raises(typer.BadParameter, match=why):
            with_secrets(saved, [bad])


def test_a_secret_in_a_list_is_refused_because_no_option_reaches_it():
    with pytest.raises(RefusedError, match=r"\['dbs'\]\[0\]\['password'\].*restore"):
        continuing._complete(without_secrets({"dbs": [{"password": "x"}]}), [], "trainlib fork digits")


def test_a_secret_that_is_set_is_a_text():
    config = without_secrets({"password": "x"})
    assert changed(config, ["password=1234"]) == {"password": "1234"}
    assert changed(config, ["password=abc"]) == {"password": "abc"}
