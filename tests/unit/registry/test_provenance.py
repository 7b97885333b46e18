"""Which process worked on a run, and where its code came from."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from trainlib._registry import provenance
from trainlib._registry.provenance import Driver, source_tags


def test_a_driver_is_known_again_by_its_text():
    driver = Driver.this()
    assert Driver.parse(str(driver)) == driver
    assert Driver.parse("fe80::1:42:1000") == Driver("fe80::1", 42, "1000"), "a host may have colons in its name"


def test_a_process_that_runs_is_not_gone():
    assert not Driver.this().is_gone


def test_a_process_that_has_ended_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        driver = Driver(Driver.this().host, process.pid, provenance._started(process.pid) or "")
        assert not driver.is_gone
        process.communicate(b"\n")
    assert driver.is_gone


def test_another_process_with_the_same_pid_does_not_count():
    assert replace(Driver.this(), started="1").is_gone


def test_of_another_machine_nothing_is_known():
    assert not Driver("another-host", 2**22 + 1, "1").is_gone


def test_a_run_says_who_started_which_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    tags = source_tags()
    assert tags["mlflow.source.name"] == str(tmp_path / "train.py")
    assert tags["mlflow.source.type"] == "LOCAL"
    assert tags["mlflow.user"]
    assert "mlflow.source.git.commit" not in tags, "that folder is no repository"


def test_a_run_says_which_commit_it_was_started_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *command], check=True, env={**os.environ, **who})
    assert len(source_tags()["mlflow.source.git.commit"]) == 40
