"""Which functions a form may name."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from trainlib._trainable import MODULES, load_trainable
from trainlib.demo import train_digits
from trainlib.flows.spec import TrainSpec


def test_a_function_that_is_marked_can_be_named():
    assert load_trainable("trainlib.demo:train_digits") is train_digits


@pytest.mark.parametrize("path", ["subprocess:Popen", "os:system", "builtins:exec", "trainlib.demo:digits_file"])
def test_no_other_function_can(path):
    with pytest.raises(ValueError, match="is not marked as a training function"):
        TrainSpec(trainer={"kind": "function", "train_loop": path}).build()


def test_whoever_runs_the_deployment_can_allow_modules(monkeypatch):
    monkeypatch.setenv(MODULES, "json, email")
    assert load_trainable("json:dumps")
    assert load_trainable("email.mime.text:MIMEText")
    monkeypatch.setitem(sys.modules, "emails", SimpleNamespace(train=print))  # it only sounds like an allowed one
    with pytest.raises(ValueError, match=f"allow its module where the flow runs: {MODULES}=emails"):
        load_trainable("emails:train")


@pytest.mark.parametrize("path", ["json:codecs.open", "json:codecs.builtins.exec", "json:detect_encoding.__globals__"])
def test_a_module_that_is_allowed_does_not_open_those_that_it_imports(path, monkeypatch):
    monkeypatch.setenv(MODULES, "json")
    with pytest.raises(ValueError, match="is not marked as a training function"):
        load_trainable(path)
