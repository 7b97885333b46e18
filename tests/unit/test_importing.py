"""What was imported for a training is not searched for garbage while the training starts, and what the user had is again later."""

from __future__ import annotations

import gc
import importlib
import sys
import weakref

import pytest

from trainlib._importing import collect_as_usual, without_collecting


class Node:
    """Something that only the garbage collector can find."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_usual():
    collect_as_usual()
    gc.unfreeze()  # also where another test has frozen objects
    yield
    collect_as_usual()
    assert gc.isenabled()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that has not been imported yet."""
    (tmp_path / "imported_for_the_first_time.py").write_text("VALUES = [[]]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "imported_for_the_first_time"


def test_what_an_import_makes_is_not_searched_until_the_end_and_is_searched_again_then(module, monkeypatch):
    users = Node()
    gone = weakref.ref(users)
    with without_collecting():
        assert not gc.isenabled()
        monkeypatch.setitem(sys.modules, module, importlib.import_module(module))
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    del users
    gc.collect()
    assert gone() is not None
    collect_as_usual()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert gone() is None


def test_nothing_is_kept_from_the_collector_where_nothing_was_imported():
    with without_collecting():
        import json  # noqa: F401
    assert gc.get_freeze_count() == 0


def test_what_the_user_has_frozen_stays_frozen(module, monkeypatch):
    gc.freeze()
    try:
        with without_collecting():
            monkeypatch.setitem(sys.modules, module, importlib.import_module(module))
        collect_as_usual()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
