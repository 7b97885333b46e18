"""Each rank runs in a folder of its own, and finds what it found before."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from trainlib import _storage as storage
from trainlib._execution.working_directory import ORIGINAL, WorkingDirectory, remove_empty


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """The folder of a script, with modules that are found relative to it."""
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "beside_the_script.py").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setenv("TRAINLIB_HOME", "home")
    monkeypatch.setenv(ORIGINAL, "")
    return folder


def test_ranks_have_folders_of_their_own_and_know_that_of_the_script(tmp_path, script):
    logs = tmp_path / "logs"
    home = storage.home()
    for rank in (0, 1):
        with WorkingDirectory(str(logs), str(script)).entered(rank):
            assert os.getcwd() == str(logs / f"rank_{rank}")
            assert os.environ[ORIGINAL] == str(script)
            assert storage.home() == home
            importlib.import_module("beside_the_script")
            if rank == 1:
                open("my_model", "w").close()
            del sys.modules["beside_the_script"]
        assert os.getcwd() == str(script)
    assert [each.name for each in logs.iterdir()] == ["rank_1"], "one in which nothing was written is not left behind"
    (logs / "rank_2").mkdir()
    (logs / "rank_2.log").touch()
    remove_empty(logs)
    assert sorted(each.name for each in logs.iterdir()) == ["rank_1", "rank_2.log"]


def test_it_can_be_left_as_it_is(script):
    with WorkingDirectory(script=str(script)).entered(0):
        assert os.getcwd() == os.environ[ORIGINAL] == str(script)


def test_on_another_machine_the_script_is_where_its_code_was_sent(tmp_path, script):
    for elsewhere in (str(tmp_path / "not here"), None):
        with WorkingDirectory(str(tmp_path / "logs"), elsewhere).entered(0):
            assert os.environ[ORIGINAL] == str(script)


def test_a_node_that_cannot_have_the_folder_has_another_one(tmp_path, script):
    (tmp_path / "a file").touch()
    with WorkingDirectory(str(tmp_path / "a file"), None).entered(3):
        assert "trainlib-rank_3-" in os.getcwd()
        there = os.getcwd()
    assert not os.path.exists(there)


def test_the_function_may_go_anywhere_and_fail(tmp_path, script):
    def runs() -> None:
        with WorkingDirectory(str(tmp_path / "logs"), None).entered(0):
            os.chdir("/")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        runs()
    assert os.getcwd() == str(script)


def test_a_folder_that_was_deleted_is_missed_by_nobody(tmp_path, script):
    script.joinpath("beside_the_script.py").unlink()
    script.rmdir()
    with WorkingDirectory(str(tmp_path / "logs"), str(script)).entered(0):
        assert os.getcwd() == str(tmp_path / "logs" / "rank_0")
        assert os.environ[ORIGINAL] == "", "there is none to name"


def test_a_copy_of_the_folder_counts_even_where_there_is_a_folder_of_that_name(tmp_path, script, monkeypatch):
    copy = tmp_path / "session" / "runtime_resources" / "working_dir_files" / "_ray_pkg_0"
    copy.mkdir(parents=True)
    monkeypatch.chdir(copy)
    with WorkingDirectory(str(tmp_path / "logs"), str(script)).entered(0):
        assert os.environ[ORIGINAL] == str(copy)
