"""Which Lightning is used: a user may have either of its two packages, or none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trainlib.lightning import RayDDPStrategy, _package


def test_without_lightning_an_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(_package, "_NAMES", ("no_lightning.pytorch", "no_pytorch_lightning"))
    with pytest.raises(ImportError, match=r"needs Lightning: pip install 'trainlib\[lightning\]'"):
        RayDDPStrategy()


def test_the_package_that_a_function_has_imported_is_used():
    code = """
import sys
import pytorch_lightning
from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback
assert isinstance(RayDDPStrategy(), pytorch_lightning.strategies.DDPStrategy)
assert isinstance(RayLightningEnvironment(), pytorch_lightning.plugins.environments.LightningEnvironment)
assert isinstance(RayTrainReportCallback(), pytorch_lightning.Callback)
assert isinstance(RayTrainReportCallback(), RayTrainReportCallback)
assert "lightning.pytorch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
