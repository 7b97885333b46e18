"""A process in which trainlib cannot be imported, as where a model is served: it loads models with MLflow, and predicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pandas as pd

__all__ = ["BLOCKER", "predictions_without_trainlib"]

BLOCKER = """
import importlib.abc, sys
class NoTrainlib(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "trainlib":
            raise ModuleNotFoundError("there is no trainlib here", name=name)
sys.meta_path.insert(0, NoTrainlib())
"""

_PREDICT = """
import io, json
import numpy as np, pandas as pd
from mlflow import pyfunc
predicted, imported = {}, []
for uri, rows in json.loads(sys.stdin.read()).items():
    predicted[uri] = np.asarray(pyfunc.load_model(uri).predict(pd.read_json(io.StringIO(rows), orient="split"))).tolist()
    imported.append(sorted(name for name in sys.modules if "." not in name))
assert "trainlib" not in sys.modules
print(json.dumps({"predicted": predicted, "imported": imported}))
"""


def predictions_without_trainlib(
    rows: Mapping[str, pd.DataFrame], **environment: str
) -> tuple[dict[str, Any], list[list[str]]]:
    """What models predict in such a process, and after each of them the packages that it has imported.

    Args:
        rows: The rows to predict for, by the URI or folder of the model.
        environment: Further variables.
    """
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER + _PREDICT],
        input=json.dumps({uri: each.to_json(orient="split") for uri, each in rows.items()}),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return said["predicted"], said["imported"]
