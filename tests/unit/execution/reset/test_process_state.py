"""A process is as it was before: nothing of one training function reaches the next."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import linecache
import logging
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import threading
import types

import pytest

from trainlib._execution.reset import process_state
from trainlib._execution.reset.left_behind import Handover
from trainlib._execution.reset.settings import Settings

MODULES = {
    "plain.py": "VALUE = 1",
    "package/__init__.py": "",
    "package/part.py": "VALUE = 1",
    "spread/part.py": "VALUE = 1",  # a namespace package
}


@pytest.fixture
def state(tmp_path, monkeypatch):
    assert process_state._children() == [], "a test before this one has left a process running"
    monkeypatch.setattr(atexit, "register", atexit.register)
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    state = process_state.snapshot(None)
    sys.path.insert(0, str(tmp_path))
    yield state
    process_state.restore(state, None)


def modules():
    return {name for name in sys.modules if name.partition(".")[0] in ("plain", "package", "spread", "made")}


def test_the_users_modules_are_forgotten(state):
    for name in ("plain", "package.part", "spread.part"):
        importlib.import_module(name)
    sys.modules["made"] = types.ModuleType("made")
    sys.modules["made.part"] = types.ModuleType("made.part")
    sys.modules["__mp_main__"] = importlib.import_module("plain")
    sys.modules["__main__"].left = 1  # type: ignore[attr-defined]
    assert len(modules()) == 7
    assert process_state.restore(state, None) is None
    assert modules() == set()
    assert sys.modules.get("__mp_main__") is state.modules.get("__mp_main__")
    assert not hasattr(sys.modules["__main__"], "left")
    assert sys.path == state.path
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("plain")


def test_another_folder_with_a_module_of_the_same_name(state, tmp_path):
    assert importlib.import_module("plain").VALUE == 1
    process_state.restore(state, None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plain.py").write_text("VALUE = 2")
    sys.path.insert(0, str(tmp_path / "other"))
    assert importlib.import_module("plain").VALUE == 2


def test_modules_of_python_itself_stay(state):
    import wave

    process_state.restore(state, None)
    assert sys.modules["wave"] is wave


def test_a_module_that_a_library_has_made_stays_with_it(state, monkeypatch):
    """As ``torch.ops`` does, whose file is said to be ``_ops.py``: without it, the next function could not use torch."""
    made = types.ModuleType("pytest.made")
    made.__file__ = "_made.py"
    monkeypatch.setitem(sys.modules, "pytest.made", made)
    monkeypatch.setattr(pytest, "made", made, raising=False)
    assert process_state.restore(state, None) is None
    assert sys.modules.get("pytest.made") is made
    assert pytest.made is made


def test_a_compiled_module_of_the_users_cannot_be_loaded_twice(state, tmp_path):
    sys.modules["plain"] = module = types.ModuleType("plain")
    module.__file__ = str(tmp_path / "plain.so")
    assert "compiled module plain" in str(process_state.restore(state, None))
    del sys.modules["plain"]


def test_settings_of_the_process(state, tmp_path):
    os.environ["LEFT"] = "secret"
    os.chdir("/")
    socket.setdefaulttimeout(1.0)
    os.umask(0o777)
    sys.setrecursionlimit(5000)
    sys.setswitchinterval(0.1)
    gc.disable()
    gc.set_threshold(10)
    multiprocessing.set_start_method("spawn", force=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0 if soft else min(1, hard) if hard >= 0 else 1, hard))
    changed = Settings.now()
    sys.excepthook = threading.excepthook = lambda *_: None
    sys.meta_path.insert(0, types.SimpleNamespace(find_spec=lambda *_: None))
    linecache.cache["left"] = (1, None, ["left"], "left")
    assert process_state.restore(state, None) is None
    assert "LEFT" not in os.environ
    assert {name for name, value in vars(changed).items() if value != vars(state.settings)[name]} >= {
        *("timeout", "recursion", "switch_interval", "umask"),
        *("collects_garbage", "collection_thresholds", "start_method"),
    }
    assert Settings.now() == state.settings
    assert (sys.excepthook, sys.unraisablehook, threading.excepthook) == state.hooks
    assert sys.meta_path == state.finders[0]
    assert "left" not in linecache.cache


def test_loggers(state):
    mine, theirs = logging.getLogger("mine.own"), logging.getLogger("trainlib")
    before = theirs.level, list(theirs.handlers)
    for logger in (mine, theirs, logging.root):
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(5)
    logging.disable(50)
    assert process_state.restore(state, None) is None
    assert (mine.handlers, mine.level, mine.propagate) == ([], logging.NOTSET, True)
    assert (theirs.level, theirs.handlers) == before
    assert logging.root.manager.disable == state.logging.disabled


def test_a_thread_or_a_changed_signal_handler_cannot_be_reset(state):
    ending = threading.Event()
    thread = threading.Thread(target=ending.wait, name="left running")
    thread.start()
    assert "left running" in str(process_state.restore(state, None))
    ending.set()
    thread.join()
    assert process_state.restore(state, None) is None


def test_what_is_left_behind_for_others(state, tmp_path):
    handover = Handover.now(None)
    assert handover.left_behind() == ()
    changed, original = importlib.import_module("ssl"), importlib.import_module("ssl").create_default_context
    handover = Handover.now(None)
    with open(tmp_path / "left_open", "w"):
        changed.create_default_context = changed._create_unverified_context  # type: ignore[assignment]
        assert handover.left_behind() == (
            "another ssl.create_default_context",
            f"the open file {tmp_path / 'left_open'}",
        )
        changed.create_default_context = original
    assert handover.left_behind() == ()


FRESH = """
import atexit, json, sys
from trainlib._execution.reset import process_state
from trainlib._execution.reset.left_behind import Handover
from trainlib._execution.reset.settings import Settings

def said(): print("of the user")

def main():
    state, handover = process_state.snapshot(None), Handover.now(None)
    import mpmath, wave
    atexit.register(print, "of a library")
    atexit.register(said)
    problem = process_state.restore(state, None)
    print(json.dumps([problem, handover.left_behind(), "mpmath" in sys.modules]))

main()
"""


def test_libraries_stay_and_are_named_and_exit_handlers_of_the_user_are_dropped():
    ran = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    first, *rest = ran.stdout.splitlines()
    assert json.loads(first) == [None, ["the library mpmath"], True]
    assert rest == ["of a library"]
