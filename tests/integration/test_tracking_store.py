"""The store that an MLflowLoggerCallback names is that of its training, and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator

import mlflow
import pytest
from mlflow import MlflowClient

from tests.integration.mlflow_server import MlflowServer
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, TrainingFailedError, session, tune
from trainlib.callbacks import Callback, MLflowLoggerCallback
from trainlib.tune import TuneConfig, Tuner


def train_func(config):
    variables = ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN")
    seen = {name: os.environ.get(name) for name in variables}
    session.report({"loss": config.get("x", 1.0)}, checkpoint=Checkpoint.from_dict({"seen": seen}))
    if config.get("fails"):
        raise ValueError("no")


class SeenInTheDriver(Callback):
    """What a user's callback sees while the training runs."""

    uri: str | None = None

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.uri = mlflow.get_tracking_uri()


def trainer(*callbacks: Callback, **config) -> DataParallelTrainer:
    return DataParallelTrainer(
        train_func,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=1),
        run_config=RunConfig(callbacks=list(callbacks), verbose=0),
    )


def process() -> tuple[dict[str, str], bool]:
    """What MLflow goes by in this process."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}
    return variables, mlflow.is_tracking_uri_set()


def seen_by_worker(result) -> dict[str, str | None]:
    return result.checkpoint.to_dict()["seen"]


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> str:
    """A store besides the session's own. Making its tables takes seconds, so the tests share it."""
    return f"sqlite:///{tmp_path_factory.mktemp('other')}/other.db"


def test_the_store_of_a_callback_is_used_for_its_training_only(registry, other, home):
    before = process()
    driver = SeenInTheDriver()
    result = trainer(MLflowLoggerCallback(tracking_uri=other, tracking_token="secret"), driver).fit()
    assert process() == before
    run = MlflowClient(other).get_run(result.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {"loss": 1.0}
    assert driver.uri == other
    assert seen_by_worker(result) == {"MLFLOW_TRACKING_URI": other, "MLFLOW_TRACKING_TOKEN": "secret"}

    own = trainer(driver).fit()
    assert process() == before
    assert registry.get_run(own.run_id).info.status == "FINISHED"
    assert driver.uri == f"sqlite:///{home}/mlflow.db"
    assert seen_by_worker(own) == {"MLFLOW_TRACKING_URI": driver.uri, "MLFLOW_TRACKING_TOKEN": None}


def test_a_training_that_fails_leaves_the_process_as_it_was(other, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
    before = process()
    with pytest.raises(TrainingFailedError, match="ValueError: no"):
        trainer(MLflowLoggerCallback(tracking_uri=other, tracking_token="secret"), fails=True).fit()
    assert process() == before


def test_a_sweep_is_in_the_store_of_its_callback_with_all_of_its_trials(other):
    before = process()
    tuner = Tuner(
        trainer(),
        param_space={"train_loop_config": {"x": tune.grid_search([1.0, 2.0])}},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=RunConfig(callbacks=[MLflowLoggerCallback(tracking_uri=other)], verbose=0),
    )
    results = tuner.fit()
    assert process() == before
    client = MlflowClient(other)
    runs = [client.get_run(run_id) for run_id in (results.run_id, *(result.run_id for result in results))]
    assert [run.info.status for run in runs] == ["FINISHED"] * 3
    assert all(seen_by_worker(result)["MLFLOW_TRACKING_URI"] == other for result in results)


@pytest.fixture
def server(tmp_path) -> Iterator[str]:
    """A tracking server that keeps artifacts itself, so that they are reached only through it."""
    running = MlflowServer(tmp_path, keeps_artifacts=True)
    running.start()
    try:
        yield running.uri
    finally:
        running.kill()


def test_a_checkpoint_on_a_server_that_only_the_callback_names_can_be_read_afterwards(server):
    before = process()
    result = trainer(MLflowLoggerCallback(tracking_uri=server, experiment_name="served")).fit()
    assert process() == before
    assert result.run_url.startswith(f"{server}/#/experiments/")
    assert result.checkpoint.path.startswith(f"{server}/api/2.0/mlflow-artifacts/artifacts/")
    assert seen_by_worker(result)["MLFLOW_TRACKING_URI"] == server
    assert [checkpoint.path for checkpoint, _ in result.best_checkpoints] == [result.checkpoint.path]
