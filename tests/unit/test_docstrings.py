"""Every public name has a docstring, and the examples in docstrings work."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import trainlib

MODULES = sorted(name for _, name, _ in pkgutil.walk_packages(trainlib.__path__, "trainlib."))
PUBLIC = ["trainlib", *(name for name in MODULES if not any(part.startswith("_") for part in name.split(".")))]
"""What a user may import. All other modules, or the folders they lie in, have a leading underscore."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in module.__all__:
        documented = getattr(module, public)
        assert inspect.getdoc(documented), f"{name}.{public} has no docstring"
