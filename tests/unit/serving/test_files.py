"""A registered checkpoint is a model of MLflow's, which needs no trainlib."""

from __future__ import annotations

import ast
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
import yaml
from ray.data.preprocessors import Chain, Concatenator, LabelEncoder, StandardScaler
from sklearn.ensemble import RandomForestClassifier

from tests.saved_checkpoints import saved
from tests.without_trainlib import predictions_without_trainlib
from trainlib import Checkpoint, _distributions
from trainlib import _rooms as rooms
from trainlib import _storage as storage
from trainlib._prediction.predictor import BatchPredictor, Recipe
from trainlib._registry.retention import SavedCheckpoint
from trainlib._serving.checkpoints import loader_of, why_not_served
from trainlib._serving.files import model_code, put_model_files, requirements
from trainlib.lightgbm import LightGBMCheckpoint
from trainlib.sklearn import SklearnCheckpoint
from trainlib.torch import TorchCheckpoint
from trainlib.xgboost import XGBoostCheckpoint

ROWS = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [0.5, 0.25, 0.0]})


def linear() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))


def fitted_preprocessor() -> Chain:
    """One that scales, encodes the label, and makes one column of arrays; fitted by hand, without Ray."""
    scaler, encoder = StandardScaler(columns=["x", "y"]), LabelEncoder("label")
    scaler.stats_ = {"mean(x)": 2.0, "std(x)": 0.5, "mean(y)": 0.0, "std(y)": 2.0}
    encoder.stats_ = {"unique_values(label)": {"no": 0, "yes": 1}}
    for each in (scaler, encoder):
        each._fitted = True
    return Chain(scaler, encoder, Concatenator(columns=["x", "y"]))


def predicted_by_trainlib(each: SavedCheckpoint, rows: pd.DataFrame) -> list[list[float]]:
    recipe = Recipe(each.location, True, each.kind, function=None, is_served=True, preprocess=True, kept_columns=())
    return BatchPredictor(recipe)(rows).to_numpy().tolist()


def test_a_registered_model_predicts_the_same_where_there_is_no_trainlib(tmp_path):
    plain = saved(TorchCheckpoint.from_model(linear()), str(tmp_path), "m-1")
    preprocessed = saved(TorchCheckpoint.from_model(linear(), preprocessor=fitted_preprocessor()), str(tmp_path), "m-2")
    labels = [0, 1, 1]
    forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(ROWS, labels)
    of_sklearn = saved(SklearnCheckpoint.from_estimator(forest), str(tmp_path), "m-3")
    boosted = lightgbm.train({"min_data_in_leaf": 1, "verbose": -1}, lightgbm.Dataset(ROWS, labels), 2)
    of_lightgbm = saved(LightGBMCheckpoint.from_model(boosted), str(tmp_path), "m-4")
    cities = pd.DataFrame({"y": ROWS["y"], "city": ["Ulm", "Bonn", "Ulm"]})
    matrix = xgboost.DMatrix(cities.assign(city=cities["city"].astype("category")), labels, enable_categorical=True)
    categorical = xgboost.train({"min_child_weight": 0}, matrix, 2)
    of_xgboost = saved(XGBoostCheckpoint.from_model(categorical), str(tmp_path), "m-5")
    roots = {}
    for each in (plain, of_sklearn, of_lightgbm, of_xgboost, preprocessed):
        assert put_model_files(each, "run-1") is None
        roots[each.model_id] = str(Path(each.location).parent)
    rows = {root: cities if name == "m-5" else ROWS for name, root in roots.items()}
    preprocessing = roots["m-2"]
    both, _ = predictions_without_trainlib({root: each for root, each in rows.items() if root != preprocessing})
    again, (before, after) = predictions_without_trainlib(
        dict.fromkeys([roots["m-1"], preprocessing], ROWS), needs=["ray"]
    )
    assert again[roots["m-1"]] == both[roots["m-1"]]
    both |= again
    assert "ray" not in before, "only a preprocessor of Ray's needs it"
    assert "ray" in after
    expected = linear().eval()(torch.tensor(ROWS.to_numpy(dtype=np.float32))).detach().numpy()
    scaled = (ROWS.to_numpy() - [2.0, 0.0]) / [0.5, 2.0]
    expected_scaled = linear().eval()(torch.tensor(scaled, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(both[roots["m-1"]], expected, rtol=1e-5)
    np.testing.assert_allclose(both[roots["m-2"]], expected_scaled, rtol=1e-5)
    assert both[roots["m-1"]] == predicted_by_trainlib(plain, ROWS)
    assert both[roots["m-2"]] == predicted_by_trainlib(preprocessed, ROWS)
    assert both[roots["m-3"]] == forest.predict(ROWS).tolist()
    assert [[each] for each in both[roots["m-3"]]] == predicted_by_trainlib(
        of_sklearn, ROWS[["y", "x"]].assign(label=1)
    )
    np.testing.assert_allclose(both[roots["m-4"]], boosted.predict(ROWS))
    np.testing.assert_allclose(both[roots["m-5"]], categorical.predict(matrix), err_msg="categories come as text")
    labelled = ROWS.assign(label=["yes", "no", "yes"])
    assert predicted_by_trainlib(preprocessed, labelled) == both[roots["m-2"]], "labels are not in the way"


def test_what_is_written_names_mlflow_and_the_framework_only_and_is_complete_or_not_there(tmp_path):
    each = saved(TorchCheckpoint.from_model(linear()), str(tmp_path))
    root = Path(each.location).parent
    (root / "code").mkdir()  # somebody was killed before
    (root / "requirements.txt").write_text("hal")
    assert put_model_files(each, "run-1") is None
    written = {file.relative_to(root): file.stat().st_mtime_ns for file in root.rglob("*") if file.is_file()}
    assert put_model_files(each, "run-1") is None
    assert {file.relative_to(root): file.stat().st_mtime_ns for file in root.rglob("*") if file.is_file()} == written
    needed = [line.partition("==")[0] for line in (root / "requirements.txt").read_text().splitlines()]
    assert needed == ["mlflow", "torch"]
    model = yaml.safe_load((root / "MLmodel").read_text())
    flavor = model["flavors"]["python_function"]
    assert (flavor["data"], flavor["code"]) == ("checkpoint_000002", "code")
    assert (model["model_id"], model["run_id"]) == ("m-1", "run-1")
    assert sorted(file.name for file in (root / "code" / flavor["loader_module"]).iterdir()) == [
        "__init__.py",
        "arrays.py",
        "model.py",
        "preprocessing.py",
    ]


def test_what_is_needed_is_named_as_pip_takes_it_also_where_the_framework_is_not_installed(monkeypatch):
    def not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    wanted = {name: room for name in rooms.ROOMS if (room := rooms.load(name)).served}
    monkeypatch.setattr(_distributions, "version", not_installed)
    needed = {
        name: requirements(room.served_packages or room.packages, needs_ray=False) for name, room in wanted.items()
    }
    assert needed == {
        "torch": ["mlflow", "torch"],
        "tensorflow": ["mlflow", "tensorflow", "tf_keras"],
        "xgboost": ["mlflow", "xgboost"],
        "lightgbm": ["mlflow", "lightgbm", "cffi"],
        "sklearn": ["mlflow", "scikit-learn"],
        "huggingface": ["mlflow", "transformers", "accelerate", "torch"],
        "rl": ["mlflow", "torch", "ray[rllib]"],
    }


@pytest.mark.parametrize("kind", [name for name in rooms.ROOMS if rooms.load(name).served])
def test_the_code_that_is_copied_imports_nothing_of_trainlib(kind):
    for text in model_code(kind).values():
        imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = [name.name for node in imported for name in node.names] + [
            str(node.module) for node in imported if isinstance(node, ast.ImportFrom)
        ]
        assert not [name for name in names if name.partition(".")[0] == "trainlib"]


def test_the_files_go_to_other_stores_too(tmp_path):
    each = saved(
        TorchCheckpoint.from_model(linear(), preprocessor=fitted_preprocessor()), "memory://serving/models", "m-7"
    )
    assert put_model_files(each, "run-1") is None
    root = "memory://serving/models/m-7/artifacts"
    assert storage.names_in(root) >= {"MLmodel", "code", "requirements.txt", "checkpoint_000002"}
    assert "ray[data]" in str(storage.read_text(f"{root}/requirements.txt"))
    storage.download(root, tmp_path / "here")
    from mlflow import pyfunc

    predicted = pyfunc.load_model(str(tmp_path / "here")).predict(ROWS)
    assert predicted.tolist() == predicted_by_trainlib(each, ROWS)


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (TorchCheckpoint.from_state_dict(linear().state_dict()), "it holds a state dict, .*from_model"),
        (Checkpoint.from_dict({"epoch": 3}), "not reported as a checkpoint that knows its model, .*TorchCheckpoint"),
    ],
    ids=["weights", "a plain checkpoint"],
)
def test_a_checkpoint_without_a_whole_model_says_why_it_cannot_predict(checkpoint, why, tmp_path):
    each = saved(checkpoint, str(tmp_path))
    problem = put_model_files(each, "run-1")
    assert problem is not None
    assert problem == why_not_served(each.kind, each.location)
    assert re.search(why, problem)
    assert [child.name for child in Path(each.location).parent.iterdir()] == ["checkpoint_000002"]


def test_a_checkpoint_of_lightnings_says_how_to_save_the_network_with_it(tmp_path):
    (tmp_path / "checkpoint.ckpt").touch()
    assert re.search(
        r"it is a checkpoint of Lightning's, .*RayTrainReportCallback\(model=lambda module: module\.network\)",
        str(why_not_served("torch", str(tmp_path))),
    )
    (tmp_path / "checkpoint.ckpt").rename(tmp_path / "other")
    assert "it has no model.pt. Report a whole model" in str(why_not_served("torch", str(tmp_path)))


def test_a_dict_predicts_if_it_has_a_whole_model(tmp_path):
    whole = saved(TorchCheckpoint.from_dict({"model": linear()}), str(tmp_path), "m-1")
    weights = saved(TorchCheckpoint.from_dict({"model": linear().state_dict()}), str(tmp_path), "m-2")
    assert why_not_served("torch", whole.location) is None
    assert loader_of("torch")(whole.location)(ROWS).shape == (3, 2)
    assert "it holds a state dict" in str(why_not_served("torch", weights.location))
    with pytest.raises(ValueError, match=r"it holds a state dict, .*from_model"):
        loader_of("torch")(weights.location)
