"""The config of a training that is forked or resumed."""

from __future__ import annotations

import pytest

from trainlib._continuing.config_changes import UnknownSettingError, lost_secrets, with_changes
from trainlib._secrets import without_secrets

CONFIG = {"lr": 0.1, "model": {"depth": 2}, "a.b": 1}


def test_dots_reach_into_dicts_and_the_old_config_stays():
    assert with_changes(CONFIG, {"lr": 1, "model.depth": [4], "a.b": None}) == {
        "lr": 1,
        "model": {"depth": [4]},
        "a.b": None,
    }
    assert CONFIG["model"] == {"depth": 2}


def test_a_key_is_added_only_if_asked_for():
    with pytest.raises(UnknownSettingError, match=r"no key 'model.width'. Its keys: lr, model.depth, a.b"):
        with_changes(CONFIG, {"model.width": 8})
    assert with_changes(CONFIG, {"model.width": 8}, add=True)["model"] == {"depth": 2, "width": 8}


def test_secrets_that_were_not_saved_are_found_unless_they_are_given():
    saved = without_secrets({"db": {"password": "x"}, "api_key": "y", "dbs": [{"password": "z"}]})
    lost = lost_secrets(saved, ["api_key"])
    assert (lost.keys, lost.in_lists) == (("db.password",), ("['dbs'][0]['password']",))
