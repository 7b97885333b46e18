"""Building Horovod: the right source, the right versions, and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainlib.errors import HorovodBuildError, HorovodUnavailableError
from trainlib.horovod import HorovodTrainer, build
from trainlib.horovod import _installed as installed
from trainlib.horovod import _recipe as recipe


@pytest.fixture
def source(tmp_path) -> Path:
    """A source tree to which every edit applies."""
    for edit in recipe.EDITS:
        file = tmp_path / edit.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"before\n{edit.old}\nafter\n")
    return tmp_path


def test_edits_are_applied(source):
    recipe.apply_edits(source)
    for edit in recipe.EDITS:
        assert edit.new.strip() in (source / edit.file).read_text()
    assert "14" not in (source / "CMakeLists.txt").read_text()


@pytest.mark.parametrize("times", [0, 2])
def test_an_edit_that_does_not_apply_exactly_once_ends_the_build(source, times):
    edit = recipe.EDITS[2]
    (source / edit.file).write_text(f"{edit.old}\n" * times)
    with pytest.raises(HorovodBuildError, match=f"gloo_controller.cc has .* {times} times instead of once"):
        recipe.apply_edits(source)


def test_the_version_of_a_build_names_all_that_it_was_built_for():
    versions = {
        recipe.wanted_version({"torch": "2.13.0"}),
        recipe.wanted_version({"torch": "2.13.0+cpu"}),
        recipe.wanted_version({"torch": "2.13.0", "tensorflow": "2.21.0"}),
        recipe.wanted_version({"torch": "2.13.0", "tensorflow": "2.20.0"}),
    }
    assert len(versions) == 4


def test_what_is_installed_here_is_the_recipes_own_build():
    assert recipe.installed_version() == recipe.wanted_version(recipe.installed_frameworks())


def test_a_second_build_has_nothing_to_do():
    done = subprocess.run([sys.executable, "-m", "trainlib.horovod.build"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAINLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(HorovodBuildError, match=r"no-such-compiler not found.*apt-get install g\+\+ make"):
        build.build({"torch": "2.13.0"})


def test_without_a_framework_there_is_nothing_to_build_for(monkeypatch, capsys):
    monkeypatch.setattr(recipe, "FRAMEWORKS", {})
    assert build.main() == 1
    assert "trainlib[horovod,torch]" in capsys.readouterr().err


def test_a_trainer_without_horovod_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="make horovod"):
        HorovodTrainer(lambda: None)


def test_a_trainer_with_a_horovod_for_other_versions_says_rebuild(monkeypatch):
    monkeypatch.setattr(recipe, "installed_frameworks", lambda: {"torch": "2.99.0"})
    with pytest.raises(HorovodUnavailableError, match=r"built for torch .*2\.99\.0 is installed.*Rebuild"):
        HorovodTrainer(lambda: None)


def test_a_horovod_for_neither_framework_is_refused(monkeypatch, tmp_path):
    (tmp_path / "metadata.json").write_text(json.dumps({"mxnet": "1.0", "dummy": "none"}))

    class Found:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(installed, "find_spec", lambda name: Found)
    with pytest.raises(HorovodUnavailableError, match="neither torch nor TensorFlow"):
        installed.require()
