"""A run as MLflow knows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlflow.entities import Experiment

from trainlib import RunConfig
from trainlib._registry.recorded_run import Place, RecordedRun
from trainlib._registry.store import TrackingStore

STORE = TrackingStore("http://mlflow:5000")
DIGITS = Experiment("7", "digits", "s3://bucket/artifacts", "active")


def recorded(place: Place) -> RecordedRun:
    return RecordedRun(place, "0123456789abcdef", "a/b", "s3://bucket/artifacts/run", 100.0)


def test_a_run_knows_its_page_and_its_folder(tmp_path):
    sweep = recorded(Place.of_experiment(DIGITS, RunConfig(storage_path=str(tmp_path)), STORE))
    assert sweep.url == "http://mlflow:5000/#/experiments/7/runs/0123456789abcdef?workflowType=machine_learning"
    assert sweep.log_dir == tmp_path / "a_b_01234567"
    assert not sweep.log_dir.exists(), "asking where it is does not make it"


def test_the_name_of_a_folder_needs_no_quotes_in_a_shell(tmp_path):
    trial = replace(recorded(Place.of_experiment(DIGITS, RunConfig(), STORE)), name="trial 7 · lr=0.1 at 09:30")
    assert trial.log_dir.name == "trial_7_lr=0.1_at_09_30_01234567"


def test_the_folder_of_a_trial_is_in_that_of_its_sweep(tmp_path):
    sweep = recorded(Place.of_experiment(DIGITS, RunConfig(storage_path=str(tmp_path)), STORE))
    assert recorded(sweep.trials_place).log_dir == tmp_path / "a_b_01234567" / "a_b_01234567"


def test_logs_of_a_training_whose_storage_is_remote_are_kept_at_home(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    for storage_path in ("s3://bucket", None):
        config = RunConfig(storage_path=storage_path)
        assert Place.of_experiment(DIGITS, config, STORE).log_dirs == Path(tmp_path, "runs")
