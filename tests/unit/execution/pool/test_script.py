"""What a worker gets from the script that uses it."""

from __future__ import annotations

import os
import sys

import pytest

from trainlib._execution.pool.script import Script, replace_environment, startup_environment


@pytest.fixture(autouse=True)
def process(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", {})
        yield


def test_a_worker_is_started_with_the_variables_of_the_script_and_no_others_but_rays():
    os.environ.clear()
    os.environ.update(TOKEN="mine", RAY_ADDRESS="of the script", SHLVL="3", MLFLOW_TRACKING_URI="http://mine")
    handed_on = startup_environment()
    assert handed_on == (("TOKEN", "mine"),)
    os.environ.clear()
    os.environ.update(SECRET_OF_UP="x", RAY_JOB_ID="01", CUDA_VISIBLE_DEVICES="0")
    replace_environment(handed_on)
    assert os.environ == {"TOKEN": "mine", "RAY_JOB_ID": "01", "CUDA_VISIBLE_DEVICES": "0"}


def test_the_rest_comes_when_it_is_used(tmp_path):
    os.environ.clear()
    os.environ.update(TOKEN="mine", MLFLOW_TRACKING_URI="http://mine")
    script = Script(str(tmp_path), ("/project", "/usr/lib"), Script.this().environment)
    os.environ.clear()
    sys.path[:] = ["/head", "/usr/lib"]
    script.enter()
    assert os.environ == {"MLFLOW_TRACKING_URI": "http://mine"}
    assert os.getcwd() == str(tmp_path)
    assert sys.path == ["/project", "/usr/lib", "/head"], "its own folder comes first"


def test_a_script_whose_folder_was_deleted():
    Script("/nowhere/at/all", (), {}).enter()
