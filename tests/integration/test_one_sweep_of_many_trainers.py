"""Frameworks compared on the same rows: one sweep, one table, one alias for the best, and models that all predict."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.data.preprocessors import StandardScaler
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression

from tests.without_trainlib import predictions_without_trainlib
from trainlib import RunConfig, tune
from trainlib._prediction.model_names import find_model
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.flows import _embedded as embedded
from trainlib.flows import pipeline, predict
from trainlib.lightgbm import LightGBMTrainer
from trainlib.sklearn import SklearnTrainer
from trainlib.torch import TorchTrainer
from trainlib.tune import ResultGrid, TuneConfig, Tuner
from trainlib.xgboost import XGBoostTrainer

ROWS = load_breast_cancer(as_frame=True).frame  # with spaces in the names of its columns
FEATURES = [name for name in ROWS.columns if name != "target"]
METRIC = "validation-auc"
"""The name that boosted trees and scikit-learn give it by themselves, and that a training function has to report."""
BOOSTING = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 2}
LIGHT = {"objective": "binary", "metric": "auc"}

CODE = """
    import pandas as pd
    import torch
    from sklearn.metrics import roc_auc_score
    from trainlib import session, trainable
    from trainlib.torch import TorchCheckpoint

    def columns(name, label):
        batch = pd.concat(session.get_dataset_shard(name).iter_batches(batch_format="pandas"))
        features = batch.drop(columns=[label]).to_numpy(dtype="float32", copy=True)
        return torch.tensor(features), torch.tensor(batch[label].to_numpy(dtype="float32", copy=True))

    @trainable
    def train_network(config):
        torch.manual_seed(0)
        rows, labels = columns("train", config["target"])
        unseen, answers = columns("validation", config["target"])
        model = torch.nn.Sequential(torch.nn.Linear(rows.shape[1], 1), torch.nn.Sigmoid(), torch.nn.Flatten(0))
        optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
        for epoch in range(3):
            for _ in range(20):
                optimizer.zero_grad()
                torch.nn.functional.binary_cross_entropy(model(rows), labels).backward()
                optimizer.step()
            auc = float(roc_auc_score(answers, model(unseen).detach()))
            session.report({"validation-auc": auc}, checkpoint=TorchCheckpoint.from_model(model))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """The user's module, and the rows beside it: all of them, and some without labels."""
    folder = tmp_path_factory.mktemp("cancer")
    (folder / "networks.py").write_text(textwrap.dedent(CODE))
    ROWS.to_parquet(folder / "cancer.parquet")
    ROWS[FEATURES][500:].to_parquet(folder / "new.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        embedded.start()
        embedded.wait()
        yield folder


def compared(name: str, rows: pd.DataFrame, trained_on: int) -> ResultGrid:
    """A sweep over four frameworks on the same rows, with labels 0 and 1 in the column ``target``."""
    import networks

    common = {
        "datasets": {"train": rows[:trained_on], "validation": rows[trained_on:]},
        "preprocessor": StandardScaler(columns=[column for column in rows.columns if column != "target"]),
    }
    return Tuner(
        tune.grid_search(
            [
                TorchTrainer(networks.train_network, train_loop_config={"target": "target", "lr": 0.05}, **common),
                XGBoostTrainer(params=BOOSTING, label_column="target", num_boost_round=5, **common),
                LightGBMTrainer(params=LIGHT, label_column="target", num_boost_round=5, **common),
                SklearnTrainer(LogisticRegression(), label_column="target", scoring={"auc": "roc_auc"}, **common),
            ]
        ),
        tune_config=TuneConfig(metric=METRIC, mode="max"),
        run_config=RunConfig(name=name, verbose=0),
    ).fit()


def runs_in_one_table(results: ResultGrid, registry: Any) -> list[Any]:
    """The trials of a sweep, which MLflow shows below one run, all with the metric that they are compared by."""
    assert not results.errors, results.errors
    runs = [registry.get_run(result.run_id) for result in results]
    assert len({run.data.tags["mlflow.parentRunId"] for run in runs}) == 1, "one table, and one chart by this metric"
    assert results.get_best_result().metrics[METRIC] == max(run.data.metrics[METRIC] for run in runs)
    return runs


def test_one_sweep_compares_frameworks_and_each_of_its_models_predicts_without_trainlib(folder, registry):
    runs = runs_in_one_table(compared("frameworks", ROWS, 400), registry)
    trained = {run.data.params["trainer"] for run in runs}
    assert trained == {"TorchTrainer", "XGBoostTrainer", "LightGBMTrainer", "SklearnTrainer"}
    assert all(run.data.metrics[METRIC] > 0.9 for run in runs)

    rows = ROWS[FEATURES][500:].reset_index(drop=True)
    ours = {}
    for run in runs:
        uri = f"models:/cancer by {run.data.params['trainer']}@best"
        promote_checkpoint(find_model(run.info.run_id).model_id, uri.removeprefix("models:/").removesuffix("@best"))
        written = predict(uri, str(folder / "new.parquet"), num_workers=1, storage_path=str(folder))
        files = sorted(map(str, Path(written.folder).glob("*.parquet")))
        ours[uri] = pd.read_parquet(files)["prediction"].tolist()
    elsewhere, _ = predictions_without_trainlib(
        dict.fromkeys(ours, rows), needs=["ray"], MLFLOW_TRACKING_URI=current_store().uri
    )
    for uri, predicted in ours.items():
        np.testing.assert_allclose(elsewhere[uri], predicted, rtol=1e-6)
        assert np.mean((np.asarray(predicted) > 0.5) == ROWS["target"][500:]) > 0.9, uri


def test_one_sweep_compares_frameworks_on_digits(folder, registry):
    digits = load_digits(as_frame=True).frame
    varying = digits.loc[:, digits.nunique() > 1]
    odd = varying.assign(target=digits["target"] % 2)
    runs = runs_in_one_table(compared("frameworks on digits", odd, 1200), registry)
    assert all(run.data.metrics[METRIC] > 0.8 for run in runs)


def test_one_pipeline_compares_frameworks_and_promotes_the_best(folder, registry):
    weak = {"kind": "xgboost", "params": {**BOOSTING, "max_depth": 1}, "num_boost_round": 1}
    fitted = {"kind": "sklearn", "estimator": "sklearn.linear_model:LogisticRegression", "scoring": {"auc": "roc_auc"}}
    still = {"kind": "torch", "train_loop": "networks:train_network", "train_loop_config": {"lr": 0.0}}
    common = {
        "source": str(folder / "cancer.parquet"),
        "target": "target",
        "steps": [{"name": "StandardScaler", "columns": FEATURES}],
        "metric": METRIC,
        "model_name": "cancer of all",
    }
    compared = pipeline(trainer=still, compare_with=[weak, fitted], **common)
    scores = {
        run.data.params["trainer"]: run.data.metrics[METRIC] for run in runs_in_one_table(compared.sweep, registry)
    }
    assert compared.best == {"trainer": "SklearnTrainer"}
    assert max(scores, key=scores.__getitem__) == "SklearnTrainer"
    assert compared.decision.new == pytest.approx(scores["SklearnTrainer"])
    assert compared.decision.is_promoted

    alone = pipeline(trainer=weak, **common)
    assert alone.decision.new == pytest.approx(scores["XGBoostTrainer"])
    assert not alone.decision.is_promoted
    assert str(registry.get_model_version_by_alias("cancer of all", "best").version) == compared.version.version
    versions = registry.search_model_versions("name = 'cancer of all'")
    assert [each.tags["trainlib.served"] for each in versions] == ["yes"] * 2
