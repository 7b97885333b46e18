"""What a training ran with."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib import metadata

import pytest

from trainlib._registry.environment import Environment


def test_what_is_stored_is_read_back():
    here = Environment.here()
    assert Environment.loads(here.dumps()) == here
    assert here.differences(Environment.loads(here.dumps())) == []


@pytest.mark.parametrize("package", ["ray", "mlflow", "prefect", "typing-extensions"])
def test_packages_have_their_versions(package):
    assert Environment.here().packages[package] == metadata.version(package)


def test_code_that_is_not_committed_counts(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("lr = 0.1\n")
    git("init")
    git("add", "train.py")
    git("commit", "-m", "begin")
    committed = Environment.here()
    (tmp_path / "train.py").write_text('lr = 0.2\npassword = "hunter2"\ndata = "ftp://ada:hunter2@host/x"\n')
    assert Environment.here() == committed, "the process has loaded it as it was"
    other = tmp_path / "sub"
    other.mkdir()
    monkeypatch.chdir(other)
    changed = Environment.here()
    assert "+lr = 0.2" in changed.diff
    assert "hunter2" not in changed.diff
    assert committed.differences(changed) == ["what was changed in the code without being committed is not the same"]


def test_every_difference_is_named():
    here = Environment.here()
    other = replace(here, python="2.7.18", seeds={"PYTHONHASHSEED": "1"})
    assert here.differences(other) == [
        f"python was {here.python}, and is 2.7.18",
        "PYTHONHASHSEED was not set, and is 1",
    ]
