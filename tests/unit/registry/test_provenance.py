"""Where the code of a run came from."""

from __future__ import annotations

import os
import subprocess
import sys

from trainlib._registry.provenance import source_tags


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
