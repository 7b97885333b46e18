"""A process in which neither trainlib nor Ray nor Prefect can be imported, as where a model is served: it loads models with
MLflow, and predicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

__all__ = ["blocker", "predictions_without_trainlib"]

_OURS = ("trainlib", "ray", "prefect")
_BLOCKER = """
import importlib.abc, sys
class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"there is no {{name}} here", name=name)
sys.meta_path.insert(0, NotInstalled())
"""


def blocker(needs: Collection[str] = ()) -> str:
    """Code after which a process cannot import trainlib, Ray and Prefect, but those of them that ``needs`` names."""
    return _BLOCKER.format(packages=sorted(set(_OURS) - set(needs)))


_PREDICT = """
import io, json
import numpy as np, pandas as pd
from mlflow import pyfunc
predicted, imported = {}, []
for uri, rows in json.loads(sys.stdin.read()).items():
    predicted[uri] = np.asarray(pyfunc.load_model(uri).predict(pd.read_json(io.StringIO(rows), orient="split"))).tolist()
    imported.append(sorted(name for name in sys.modules if "." not in name))
print(json.dumps({"predicted": predicted, "imported": imported}))
"""


def predictions_without_trainlib(
    rows: Mapping[str, pd.DataFrame], *, needs: Collection[str] = (), **environment: str
) -> tuple[dict[str, Any], list[list[str]]]:
    """What models predict in such a process, and after each of them the packages that it has imported.

    Args:
        rows: The rows to predict for, by the URI or folder of the model.
        needs: What a model needs besides MLflow and its framework: ``ray`` for a preprocessor of Ray's, or for RLlib.
        environment: Further variables.
    """
    done = subprocess.run(
        [sys.executable, "-c", blocker(needs) + _PREDICT],
        input=json.dumps({uri: each.to_json(orient="split") for uri, each in rows.items()}),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return said["predicted"], said["imported"]
