"""scikit-learn in a worker: metrics as in Ray's guides, retries, and models that predict and are served without trainlib."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ray.data.preprocessors import StandardScaler
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from tests import process_logs
from tests.longest import LONGEST_S
from tests.without_trainlib import blocker, predictions_without_trainlib
from trainlib import FailureConfig, RunConfig, ScalingConfig
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.errors import TrainingFailedError
from trainlib.flows import predict
from trainlib.sklearn import SklearnCheckpoint, SklearnTrainer

ROWS = load_breast_cancer(as_frame=True).frame.rename(columns=lambda name: name.replace(" ", "_"))
TRAIN, VALID = ROWS[:400], ROWS[400:]
FEATURES = [name for name in ROWS.columns if name != "target"]


class KilledOnce(LogisticRegression):
    """Its process is killed while it is fitted for the first time. Later, the folds of a cross-validation wait for each other."""

    def __init__(self, marker="", max_iter=3000, thread_count=1):
        super().__init__(max_iter=max_iter)
        self.marker = marker
        self.thread_count = thread_count

    def fit(self, rows, labels):
        if not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        Path(f"{self.marker}-{uuid.uuid4().hex}").touch()
        deadline = time.monotonic() + LONGEST_S
        while len(list(Path(self.marker).parent.glob("killed-*"))) < 2:
            assert time.monotonic() < deadline, "the other fold is not fitted beside this one"
            time.sleep(0.02)
        return super().fit(rows, labels)


@pytest.fixture(scope="module")
def trained():
    """With a preprocessor, cross-validation and a dataset to score on."""
    return SklearnTrainer(
        RandomForestClassifier(random_state=0),
        params={"n_estimators": 20},
        label_column="target",
        scoring={"accuracy": "accuracy", "auc": "roc_auc"},
        cv=3,
        return_train_score_cv=True,
        datasets={"train": TRAIN, "valid": VALID},
        preprocessor=StandardScaler(columns=FEATURES),
        scaling_config=ScalingConfig(trainer_resources={"CPU": 2}),
        run_config=RunConfig(name="forest", verbose=0),
    ).fit()


def test_it_fits_as_scikit_learn_alone_and_reports_what_the_guides_name(trained, registry):
    scaled = (ROWS[FEATURES] - TRAIN[FEATURES].mean()) / TRAIN[FEATURES].std(ddof=0)
    alone = RandomForestClassifier(n_estimators=20, random_state=0).fit(scaled[:400], TRAIN["target"])
    estimator = trained.checkpoint.get_estimator()
    assert isinstance(trained.checkpoint, SklearnCheckpoint)
    assert estimator.n_jobs == 2, "the cores that it was given"
    np.testing.assert_allclose(estimator.predict_proba(scaled[400:]), alone.predict_proba(scaled[400:]))
    metrics = trained.metrics
    assert metrics["valid"].keys() == {"test_accuracy", "test_auc", "score_time"}
    assert metrics["valid"]["test_accuracy"] == metrics["valid-accuracy"] == alone.score(scaled[400:], VALID["target"])
    assert metrics["fit_time"] > 0
    measured = ("test_accuracy", "test_auc", "train_accuracy", "train_auc", "fit_time", "score_time")
    assert metrics["cv"].keys() == {f"{name}{of}" for name in measured for of in ("", "_mean", "_std")}
    assert len(metrics["cv"]["test_auc"]) == 3
    assert metrics["cv"]["test_auc_mean"] == pytest.approx(np.mean(metrics["cv"]["test_auc"]))
    recorded = registry.get_run(trained.run_id)
    assert recorded.data.metrics["valid/test_auc"] == recorded.data.metrics["valid-auc"] == metrics["valid-auc"]
    assert recorded.data.params["params.n_estimators"] == "20"


def test_a_retry_starts_over_and_leaves_one_run_and_one_curve(tmp_path, registry, curve, newest_run):
    """Its folds are fitted side by side, as it was asked to, and the estimator keeps the threads that it was given.

    Rows and labels, which are no integers, come from a file.
    """
    TRAIN.assign(target=TRAIN["target"].astype(float)).to_parquet(tmp_path / "train.parquet")
    result = SklearnTrainer(
        KilledOnce(str(tmp_path / "killed"), thread_count=7),
        label_column="target",
        cv=2,
        parallelize_cv=True,
        set_estimator_cpus=False,
        scaling_config=ScalingConfig(trainer_resources={"CPU": 2}),
        datasets={"train": str(tmp_path / "train.parquet"), "valid": VALID},
        run_config=RunConfig(name="killed once", failure_config=FailureConfig(max_failures=1), verbose=0),
    ).fit()
    assert (tmp_path / "killed").exists()
    assert newest_run("killed once").info.run_id == result.run_id
    assert [step for step, _ in curve(result.run_id, "valid-accuracy")] == [1]
    assert registry.get_run(result.run_id).data.tags["trainlib.attempts"] == "2"
    assert len(result.metrics["cv"]["test_score"]) == 2
    assert result.checkpoint.get_estimator().thread_count == 7


def test_a_label_that_is_missing_lacks_values_or_is_no_class_is_named():
    """Of a dataset that only the worker sees."""
    import ray

    rows = TRAIN[["mean_area", "target"]].assign(target=[*TRAIN["target"][:-2], None, None])
    rows = ray.data.from_arrow(pa.Table.from_pandas(rows))
    for label, why in {
        "labels": "has no column 'labels'. label_column must be one of",
        "target": "the label 'target' of the dataset 'train' is missing in 2 of its 400 rows",
        "mean_area": "LogisticRegression is a classifier, but the label 'mean_area' of .* has continuous values",
    }.items():
        trainer = SklearnTrainer(
            LogisticRegression(), label_column=label, datasets={"train": rows}, run_config=RunConfig(verbose=0)
        )
        with pytest.raises(TrainingFailedError, match=why):
            trainer.fit()


def test_a_registered_model_predicts_and_is_served_without_trainlib(trained, registry, tmp_path):
    """As trainlib's own flow predicts: with the preprocessor, and without labels."""
    store = {"MLFLOW_TRACKING_URI": current_store().uri}
    model_id = next(
        iter(
            registry.search_logged_models(
                [registry.get_run(trained.run_id).info.experiment_id],
                filter_string=f"source_run_id = '{trained.run_id}'",
            )
        )
    ).model_id
    promote_checkpoint(model_id, "cancer")
    promote_checkpoint(model_id, "cancer")
    assert registry.get_model_version_by_alias("cancer", "best").tags["trainlib.served"] == "yes"
    rows = VALID[FEATURES][:20].reset_index(drop=True)
    rows.to_parquet(tmp_path / "rows.parquet")
    server = serve("models:/cancer@best", tmp_path, store)
    try:
        written = predict(
            "models:/cancer@best",
            str(tmp_path / "rows.parquet"),
            keep_columns=[],
            num_workers=1,
            storage_path=str(tmp_path),
        )
        ours = pd.read_parquet([str(each) for each in Path(written.folder).glob("*.parquet")])["prediction"].tolist()
        elsewhere, _ = predictions_without_trainlib({"models:/cancer@best": rows}, needs=["ray"], **store)
        assert len(set(ours)) == 2
        assert elsewhere["models:/cancer@best"] == ours
        assert server.answer(rows) == ours
    finally:
        server.stop()


class Server:
    """`mlflow models serve` in a process of its own, which cannot import trainlib."""

    def __init__(self, process: subprocess.Popen, url: str, log: Path) -> None:
        self.process, self._url, self._log = process, url, log

    def answer(self, rows: pd.DataFrame) -> list:
        deadline = time.monotonic() + LONGEST_S
        body = json.dumps({"dataframe_split": rows.to_dict(orient="split", index=False)}).encode()
        request = urllib.request.Request(f"{self._url}/invocations", body, {"Content-Type": "application/json"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return json.load(response)["predictions"]
            except urllib.error.HTTPError as error:
                pytest.fail(f"{error.read().decode()}\n{self._log.read_text()}")
            except OSError:  # it is not up yet
                assert self.process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.2)

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)  # the command has started the server, which does not end with it
        self.process.wait(60)


def serve(uri: str, folder: Path, environment: dict[str, str]) -> Server:
    (folder / "blocked").mkdir()
    (folder / "blocked" / "sitecustomize.py").write_text(
        blocker(needs=["ray"])
    )  # the server is a process of the command's
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log, programs = folder / "serve.log", Path(sys.executable).parent
    process_logs.follow("mlflow models serve", log)
    command = ["models", "serve", "-m", uri, "--env-manager", "local", "-h", "127.0.0.1", "-p", str(port), "-w", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(programs / "mlflow"), *command],
            env={
                **os.environ,
                **environment,
                "PYTHONPATH": str(folder / "blocked"),
                "PATH": f"{programs}:{os.environ['PATH']}",
            },
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Server(process, f"http://127.0.0.1:{port}", log)
