"""The table of results."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from trainlib.callbacks import CSVLoggerCallback, Trial


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "progress.csv", newline="") as table:
        return list(csv.DictReader(table))


def log(folder: Path, *results: dict[str, Any]) -> None:
    """What one process logs."""
    callback, trial = CSVLoggerCallback(), Trial("a1", "TorchTrainer", {}, str(folder), "run")
    for iteration, result in enumerate(results, start=1):
        callback.log_trial_result(iteration, trial, result)
    callback.log_trial_end(trial)


def test_nested_values_are_columns_and_a_new_metric_is_one_more(tmp_path):
    log(tmp_path / "logs", {"loss": 0.5, "val": {"acc": 0.25}}, {"loss": 0.25, "val": {"acc": 0.5}, "lr": 0.1})
    assert rows(tmp_path / "logs") == [
        {"loss": "0.5", "val/acc": "0.25", "lr": ""},
        {"loss": "0.25", "val/acc": "0.5", "lr": "0.1"},
    ]


def test_a_process_that_continues_a_training_continues_its_table(tmp_path):
    log(tmp_path, {"loss": 0.5})
    log(tmp_path, {"acc": 1, "loss": 0.25})
    assert rows(tmp_path) == [{"loss": "0.5", "acc": ""}, {"loss": "0.25", "acc": "1"}]


def test_secrets_of_the_config_are_left_out(tmp_path):
    log(tmp_path, {"loss": 0.5, "config": {"password": "abc", "lr": 0.1}})
    assert rows(tmp_path) == [{"loss": "0.5", "config/password": "********", "config/lr": "0.1"}]
