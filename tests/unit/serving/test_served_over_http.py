"""Registered models of all kinds answer requests: those that `mlflow models serve` gets, given to its own server in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import transformers
import xgboost
from fastapi.testclient import TestClient
from gymnasium.spaces import Box, Discrete
from mlflow import pyfunc
from mlflow.environment_variables import _MLFLOW_IS_IN_SERVING_ENVIRONMENT
from mlflow.pyfunc import scoring_server
from sklearn.linear_model import LogisticRegression

from tests.saved_checkpoints import saved
from trainlib import Checkpoint
from trainlib._serving.files import put_model_files
from trainlib.huggingface import TransformersCheckpoint
from trainlib.lightgbm import LightGBMCheckpoint
from trainlib.rl import RLCheckpoint
from trainlib.rl._rllib import tensorflow_left_alone
from trainlib.rl._served import MODULES
from trainlib.sklearn import SklearnCheckpoint
from trainlib.torch import TorchCheckpoint
from trainlib.xgboost import XGBoostCheckpoint

ROWS = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "y": [0.5, 0.25, 0.0, -1.0]})
LABELS = [0, 0, 1, 1]
TOKENS = pd.DataFrame({"input_ids": [[1, 2, 3], [3, 2, 1]]})


def of_torch(folder: Path) -> tuple[Checkpoint, Any]:
    network = torch.nn.Linear(2, 1)
    expected = network(torch.tensor(ROWS.to_numpy(), dtype=torch.float32)).detach().numpy()
    return TorchCheckpoint.from_model(network), expected


def of_sklearn(folder: Path) -> tuple[Checkpoint, Any]:
    fitted = LogisticRegression().fit(ROWS, LABELS)
    return SklearnCheckpoint.from_estimator(fitted), fitted.predict(ROWS)


def of_xgboost(folder: Path) -> tuple[Checkpoint, Any]:
    table = xgboost.DMatrix(ROWS, LABELS)
    trees = xgboost.train({"objective": "binary:logistic", "min_child_weight": 0}, table, 2)
    return XGBoostCheckpoint.from_model(trees), trees.predict(table)


def of_lightgbm(folder: Path) -> tuple[Checkpoint, Any]:
    settings = {"objective": "binary", "min_data_in_leaf": 1, "min_data_in_bin": 1, "verbose": -1}
    trees = lightgbm.train(settings, lightgbm.Dataset(ROWS, LABELS), 2)
    return LightGBMCheckpoint.from_model(trees), trees.predict(ROWS)


def of_rllib(folder: Path) -> tuple[Checkpoint, Any]:
    with tensorflow_left_alone():
        from ray.rllib.algorithms.ppo import PPOConfig

        space, actions = Box(-10, 10, (2,)), Discrete(3)
        spaces = {"__env_single__": (space, actions), "default_policy": (space, actions)}
        module = PPOConfig().get_rl_module_spec(spaces=spaces).build()
    module.save_to_path(os.path.join(folder, MODULES, "default_policy"))
    seen = {"obs": torch.tensor(ROWS.to_numpy(), dtype=torch.float32)}
    expected = module.forward_inference(seen)["action_dist_inputs"].argmax(-1).numpy()
    return RLCheckpoint.from_directory(folder), expected


def of_transformers(folder: Path) -> tuple[Checkpoint, Any]:
    sizes = {"vocab_size": 9, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 1}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
    with torch.inference_mode():
        expected = model(torch.tensor(TOKENS["input_ids"].tolist())).logits.numpy()
    return TransformersCheckpoint.from_model(model), expected


TABLE = {"inputs": ROWS.to_numpy().tolist()}


@pytest.mark.parametrize(
    ("make", "rows", "inputs"),
    [
        (of_torch, ROWS, TABLE),
        (of_sklearn, ROWS, TABLE),
        (of_xgboost, ROWS, TABLE),
        (of_lightgbm, ROWS, TABLE),
        (of_rllib, ROWS, TABLE),
        (of_transformers, TOKENS, {"inputs": {"input_ids": TOKENS["input_ids"].tolist()}}),
    ],
    ids=lambda given: given.__name__.removeprefix("of_") if callable(given) else "",
)
def test_it_answers_to_columns_with_names_and_to_arrays(
    make: Callable[[Path], tuple[Checkpoint, Any]], rows: pd.DataFrame, inputs: dict[str, Any], tmp_path, monkeypatch
):
    torch.manual_seed(0)
    checkpoint, expected = make(tmp_path / "checkpoint")
    each = saved(checkpoint, str(tmp_path))
    assert put_model_files(each, "run-1") is None
    monkeypatch.setenv(_MLFLOW_IS_IN_SERVING_ENVIRONMENT.name, "true")  # the server sets it, and leaves it
    client = TestClient(scoring_server.init(pyfunc.load_model(str(Path(each.location).parent))))
    for body in ({"dataframe_split": rows.to_dict(orient="split", index=False)}, inputs):
        answer = client.post("/invocations", json=body)
        assert answer.status_code == 200, answer.text
        np.testing.assert_allclose(answer.json()["predictions"], expected, rtol=1e-4, atol=1e-6)
