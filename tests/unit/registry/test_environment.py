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


def test_new_files_of_code_count_too(tmp_path, monkeypatch):
    """Also those that nobody has added yet, in the whole repository. Other files, such as results, do not."""
    subprocess.run(["git", "init"], cwd=tmp_path, check=True, capture_output=True)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(
        ["git", *who, "commit", "--allow-empty", "-m", "begin"], cwd=tmp_path, check=True, capture_output=True
    )
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    (tmp_path / "ignored.py").write_text("ignored = 1\n")
    (tmp_path / "my model.py").write_text('depth = 4\npassword = "hunter2"\n')
    (tmp_path / "results.csv").write_text("loss\n0.5\n")
    seen = []
    for number in range(3):
        folder = tmp_path / f"sub {number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        if number == 1:
            (tmp_path / "results.csv").write_text("loss\n0.4\n")
        elif number == 2:
            (tmp_path / "my model.py").write_text("depth = 5\n")
        seen.append(Environment.here())
    assert "my model.py" in seen[0].diff
    assert "+depth = 4" in seen[0].diff
    assert not any(text in seen[0].diff for text in ("hunter2", "ignored = 1", "loss"))
    assert seen[0].differences(seen[1]) == []
    assert seen[0].differences(seen[2]) == ["what was changed in the code without being committed is not the same"]


def test_every_difference_is_named():
    here = Environment.here()
    other = replace(here, python="2.7.18", seeds={"PYTHONHASHSEED": "1"})
    assert here.differences(other) == [
        f"python was {here.python}, and is 2.7.18",
        "PYTHONHASHSEED was not set, and is 1",
    ]
