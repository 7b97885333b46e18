"""Checkpoints of boosted trees, and the modules that serve them where there is no trainlib."""

from __future__ import annotations

import subprocess
import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from trainlib._serving.files import model_code
from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError
from trainlib.lightgbm import LightGBMCheckpoint
from trainlib.xgboost import XGBoostCheckpoint

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["a", "b", "c"])
LABELS = (ROWS["a"] > ROWS["b"]).astype(int)

SERVE = """
import sys
import pandas
from served.model import load
rows = pandas.read_json(sys.stdin)
print(",".join(f"{value:.6f}" for value in load(sys.argv[1])(rows)))
assert not any(name.partition(".")[0] == "trainlib" for name in sys.modules)
"""


def trained_with_xgboost():
    model = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(ROWS, LABELS), 5)
    return XGBoostCheckpoint.from_model(model), model.predict(xgboost.DMatrix(ROWS))


def trained_with_lightgbm():
    data = lightgbm.Dataset(ROWS, LABELS)
    model = lightgbm.train({"objective": "binary", "verbosity": -1}, data, 5)
    return LightGBMCheckpoint.from_model(model), model.predict(ROWS)


@pytest.mark.parametrize("train", [trained_with_xgboost, trained_with_lightgbm])
def test_a_model_comes_back_and_is_served_without_trainlib_whatever_the_order_of_columns(train, tmp_path):
    checkpoint, expected = train()
    folder = checkpoint.to_directory(tmp_path / "checkpoint")
    again = type(checkpoint).from_directory(folder).get_model()
    rows = xgboost.DMatrix(ROWS) if isinstance(again, xgboost.Booster) else ROWS
    np.testing.assert_allclose(again.predict(rows), expected)

    (tmp_path / "served").mkdir()  # as it lies beside a registered model
    for name, code in model_code(checkpoint.kind).items():
        (tmp_path / "served" / f"{name}.py").write_text(code)
    asked = ROWS[["c", "b", "a"]].to_json(double_precision=15)
    command = [sys.executable, "-c", SERVE, folder]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, cwd=tmp_path)
    np.testing.assert_allclose([float(value) for value in done.stdout.split(",")], expected, atol=1e-5)


@pytest.mark.parametrize("kind", [XGBoostCheckpoint, LightGBMCheckpoint])
def test_a_checkpoint_without_a_model_says_so(kind):
    with pytest.raises(CheckpointNotFoundError, match=f"It was not saved as an? {kind.__name__}"):
        kind.from_checkpoint(Checkpoint.from_dict({"epoch": 1})).get_model()
