"""How a module gets to a node that lacks it, depending on where this process has it from."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from trainlib._execution import code
from trainlib._execution.missing import advice, missing_module


def test_an_installed_package_is_named_as_pip_knows_it():
    version = importlib.metadata.version("PyYAML")
    assert f"pip install PyYAML=={version}" in advice("yaml.nodes", "gpu-7")
    assert f"RunConfig(runtime_env={{'pip': ['PyYAML=={version}']}})" in advice("yaml.nodes", "gpu-7")


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "my_layers").mkdir()
    (tmp_path / "my_layers" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "my_layers"


def test_a_package_outside_the_scripts_folder_is_sent_as_a_whole(package, monkeypatch, tmp_path_factory):
    monkeypatch.setattr(code, "script_folder", lambda: tmp_path_factory.mktemp("script"))
    text = advice("my_layers.attention", "gpu-7")
    assert "Node gpu-7 has no module 'my_layers.attention'" in text
    assert "not in the script's folder" in text
    assert f"'py_modules': ['{package}']" in text
    assert "my_layers" not in sys.modules, "nothing is imported to find it"


def test_a_package_in_a_folder_that_is_not_sent_says_why(package, monkeypatch):
    monkeypatch.setattr(code, "script_folder", lambda: code.Unsent(package.parent, "it is a home folder"))
    assert "was not sent: it is a home folder. Or send the module alone" in advice("my_layers", "gpu-7")


def test_a_package_that_was_left_out_says_what_leaves_out(package, monkeypatch):
    monkeypatch.setattr(code, "script_folder", lambda: package.parent)
    assert "without what .gitignore, .rayignore and runtime_env['excludes'] name" in advice("my_layers", "gpu-7")


def test_trainlib_is_installed_and_not_sent():
    assert "Install trainlib 0" in advice("trainlib._execution", "gpu-7")


@pytest.mark.parametrize(
    ("error", "module"),
    [
        (ModuleNotFoundError("No module named 'einops'"), "einops"),
        (ImportError("cannot import name 'x' from 'einops'"), None),
        (ValueError("No module named here"), None),
        ("No module named 'einops'", None),
        ("The actor died.\nModuleNotFoundError: No module named 'a.b'; 'a' is not a package", "a.b"),
    ],
)
def test_which_module_is_missing(error, module):
    assert missing_module(error) == module
