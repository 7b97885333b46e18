"""What every room declares is true."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trainlib import DataParallelTrainer
from trainlib import _rooms as rooms
from trainlib.execution import BackendConfig

EXTRAS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("name", rooms.choices())
def test_a_room_has_the_name_and_the_trainer_that_it_declares(name):
    room = rooms.load(name)
    assert room.name == name
    assert room.trainer_class().room is room
    assert issubclass(room.trainer_class(), DataParallelTrainer)
    assert rooms.room_of(room.config_class()) is room


FURTHER = {"sklearn": {"more_fit_params"}, "xgboost": {"train_kwargs"}, "lightgbm": {"train_kwargs"}}
"""Ray's SklearnTrainer takes arguments of ``fit()`` by keywords, which here have an argument of their own, too: ``fit_params``. Those of boosted
trees take all arguments of the library's ``train()``. These have to say what to use instead."""


@pytest.mark.parametrize("name", rooms.choices())
def test_a_trainer_has_all_arguments_by_name(name):
    """So that an editor shows them, and restore() knows them."""
    room = rooms.load(name)
    parameters = inspect.signature(room.trainer_class()).parameters
    common = inspect.signature(DataParallelTrainer).parameters.keys() - {"backend_config"}
    if not room.takes_function:
        common -= {"train_loop_per_worker", "train_loop_config"}
    further = {each.name for each in parameters.values() if each.kind is each.VAR_KEYWORD}
    assert parameters.keys() - further == common | {*room.config_arguments, *room.own_arguments}
    assert further == FURTHER.get(name, set())


@pytest.mark.parametrize("name", rooms.ROOMS)
def test_what_a_room_needs_can_be_installed(name):
    room = rooms.load(name)
    assert room.packages
    assert room.extra in EXTRAS
    assert room.extra in EXTRAS["frameworks"][0], "what `make test` installs"
    room.require_installed()


def test_settings_of_a_users_own_belong_to_no_framework():
    class MyConfig(BackendConfig):
        framework = "mine"

    assert rooms.room_of(MyConfig()) is rooms.FUNCTION


def test_the_table_imports_no_room():
    code = f"import sys, trainlib; print([name for name in {list(rooms.ROOMS)} if f'trainlib.{{name}}' in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
