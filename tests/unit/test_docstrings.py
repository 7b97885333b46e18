"""Every public name has a docstring, and the examples in docstrings work."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import trainlib

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
    "trainlib.horovod",
    "trainlib.sgd",
    "trainlib.tensorflow",
    "trainlib.torch",
    "trainlib.tune",
    "trainlib.tune.schedulers",
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
    code = (
        "import sys, trainlib, trainlib.torch, trainlib.tensorflow, trainlib.horovod, trainlib.sgd, trainlib.tune; "
        "print([m for m in ('torch', 'tensorflow', 'horovod', 'prefect', 'mlflow', 'optuna', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
