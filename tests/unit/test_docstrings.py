"""Every public name says what it is, and the examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import trainlib
from trainlib import _rooms as rooms

MODULES = sorted(
    name
    for package in (trainlib,)
    for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if name != "trainlib.flows.serve"
)
PUBLIC = [
    "trainlib",
    "trainlib.callbacks",
    "trainlib.execution",
    "trainlib.sgd",
    "trainlib.tune",
    "trainlib.tune.schedulers",
    *(rooms.load(name).trainer.partition(":")[0] for name in rooms.ROOMS),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        documented = getattr(module, public)
        assert inspect.getdoc(documented), f"{name}.{public} has no docstring"


def test_importing_the_library_imports_no_framework():
    heavy = [package for name in rooms.ROOMS for package in rooms.load(name).packages]
    heavy += ["prefect", "mlflow", "optuna", "matplotlib"]
    code = f"import sys, {', '.join(PUBLIC)}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
