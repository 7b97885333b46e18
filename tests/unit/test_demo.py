"""The demo's data are an ordinary file, written once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainlib import cli
from trainlib._data.sources import inspect_source
from trainlib.demo import digits_file
from trainlib.flows.demo import digits

DATA = Path(cli.__file__).parent / "_data"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))


def test_the_file_is_written_once_and_whole(tmp_path):
    path = digits_file()
    assert path == tmp_path / "demo" / "digits.csv"
    source = inspect_source(path)
    assert (source.rows, len(source.columns), source.columns["target"]) == (1797, 65, "int64")
    written = path.stat().st_mtime_ns
    assert digits_file() == path
    assert path.stat().st_mtime_ns == written
    assert [each.name for each in path.parent.iterdir()] == ["digits.csv"], "nothing else is left"


def test_a_file_that_could_not_be_written_to_its_end_does_not_exist(tmp_path, monkeypatch):
    import pandas as pd

    def cut_short(frame, path, **options):
        Path(path).write_text("pixel_0_0,pix")
        raise OSError("the disk is full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", cut_short)
    with pytest.raises(OSError, match="the disk is full"):
        digits_file()
    assert list((tmp_path / "demo").iterdir()) == []


def test_without_scikit_learn_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert cli.main(["demo"]) == 1
    assert "The demo needs scikit-learn: pip install 'trainlib[sklearn]'" in capsys.readouterr().err


def test_the_pipeline_gets_the_path_of_the_file(tmp_path):
    assert digits().data.source == str(tmp_path / "demo" / "digits.csv")


@pytest.mark.parametrize("module", sorted(DATA.glob("*.py")), ids=lambda path: path.name)
def test_the_code_that_reads_data_does_not_know_the_demo(module):
    text = module.read_text().lower()
    assert "digits" not in text
    assert "sklearn" not in text
