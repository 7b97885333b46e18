"""Which folder is the user's code, and what of it is sent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainlib._execution import code
from trainlib.errors import CodeTooLargeError


def main_is(monkeypatch, file, spec=None):
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=file, __spec__=spec))


def test_the_code_is_in_the_scripts_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    main_is(monkeypatch, "/projects/digits/train.py")
    assert code.script_folder() == Path("/projects/digits")


@pytest.mark.parametrize(
    ("file", "spec"),
    [
        (None, None),  # a notebook
        ("/projects/digits/train.py", object()),  # python -m digits.train
        (f"{sys.prefix}/bin/prefect", None),
        ("/usr/local/bin/pytest", None),
    ],
)
def test_without_a_script_the_code_is_in_the_current_folder(monkeypatch, tmp_path, file, spec):
    monkeypatch.chdir(tmp_path)
    main_is(monkeypatch, file, spec)
    assert code.script_folder() == tmp_path


@pytest.mark.parametrize("folder", ["/", "/home", "/home/ada", "TMP"])
def test_nobodys_home_folder_is_sent(monkeypatch, tmp_path, folder):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = str(tmp_path) if folder == "TMP" else folder
    main_is(monkeypatch, os.path.join(folder, "train.py"))
    found = code.script_folder()
    assert isinstance(found, code.Unsent)
    assert found.folder == Path(folder)
    assert "Move the script into a folder of its own" in found.why


def test_nothing_is_sent_if_nothing_may_be(monkeypatch):
    monkeypatch.setenv("TRAINLIB_CODE_LIMIT_MIB", "0")
    main_is(monkeypatch, "/projects/digits/train.py")
    assert isinstance(code.script_folder(), code.Unsent)


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """Two files that a training needs, and many that it does not."""
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path / "results"))
    unneeded = [".git/x", ".venv/x", "node_modules/x", "a/__pycache__/x", "mlruns/x", "my.db", ".env", "results/x"]
    for name in ["train.py", "a/model.py", "big.bin", "data/big.bin", *unneeded]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(1000))
    (tmp_path / "a" / ".gitignore").write_text("*.tmp\n")
    (tmp_path / "a" / "x.tmp").write_bytes(bytes(1000))
    return tmp_path


def test_what_no_training_needs_is_left_out(project):
    excludes = code.excluded(project, ["data/", "/big.bin"])
    assert str(code.measure(project, excludes)) == "3 file(s), 0.0 MiB", "train.py, a/model.py and a/.gitignore"


def test_too_much_is_refused_by_the_largest_files(project, monkeypatch):
    monkeypatch.setenv("TRAINLIB_CODE_LIMIT_MIB", "0.5")
    (project / "data" / "big.bin").write_bytes(bytes(1024**2))
    with pytest.raises(CodeTooLargeError) as refused:
        code.measure(project, code.excluded(project, []))
    assert "has 1 MiB in 5 files; up to 0.5 MiB are sent. The largest: data/big.bin (1.0 MiB), " in str(refused.value)
    assert "runtime_env={'excludes': ['data/big.bin']}" in str(refused.value)


def test_too_many_files_are_refused_by_their_folder(project, monkeypatch):
    monkeypatch.setattr(code, "_MOST_FILES", 10)
    (project / "images").mkdir()
    for number in range(20):
        (project / "images" / f"{number}.png").touch()
    with pytest.raises(CodeTooLargeError, match=r"more than 10 files.*'excludes': \['images'\]"):
        code.measure(project, code.excluded(project, []))
