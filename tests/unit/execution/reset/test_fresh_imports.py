"""An edited module is read again, however quickly it was edited."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from trainlib._execution.reset import fresh_imports


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    fresh_imports.install()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("edited", None)
    sys.path_importer_cache.clear()


def read(file, text):
    stat = file.stat() if file.exists() else None
    file.write_text(text)
    if stat is not None:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    sys.modules.pop("edited", None)
    return importlib.import_module("edited").VALUE


def test_an_edit_of_the_same_size_in_the_same_second_is_seen(folder):
    assert read(folder / "edited.py", "VALUE = 1\n") == 1
    assert list(folder.glob("__pycache__/edited*.pyc")), "it is compiled once"
    assert read(folder / "edited.py", "VALUE = 2\n") == 2


def test_python_alone_would_not_see_it(folder):
    sys.path_hooks.pop(0)
    sys.path_importer_cache.clear()
    assert read(folder / "edited.py", "VALUE = 1\n") == 1
    assert read(folder / "edited.py", "VALUE = 2\n") == 1


def test_compiled_code_of_a_source_that_was_left_alone_is_used(folder):
    source = folder / "edited.py"
    assert read(source, "VALUE = 1\n") == 1
    compiled = next(folder.glob("__pycache__/edited*.pyc"))
    later = source.stat().st_mtime + 10
    os.utime(compiled, (later, later))
    assert not fresh_imports.may_be_stale(str(source))
