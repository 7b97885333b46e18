"""Guide sections: accessing training results, log directory structure."""

import ast
import os
import re
import socket
from datetime import datetime
from pathlib import Path

import pytest

KEYS_IN_THE_GUIDE = {
    "_time_this_iter_s",
    "_timestamp",
    "_training_iteration",
    "config",
    "date",
    "done",
    "episodes_total",
    "epoch",
    "experiment_id",
    "experiment_tag",
    "hostname",
    "iterations_since_restore",
    "node_ip",
    "pid",
    "time_since_restore",
    "time_this_iter_s",
    "time_total_s",
    "timestamp",
    "timesteps_since_restore",
    "timesteps_total",
    "training_iteration",
    "trial_id",
    "warmup_time",
}


@pytest.fixture
def ran(example):
    return example("configuring_with_session")


def test_the_last_metrics_are_printed_with_all_that_is_filled_in(ran):
    printed = ast.literal_eval(ran.printed[ran.printed.index("{") : ran.printed.index("}\n") + 1])
    assert printed == ran.result.metrics
    assert printed.keys() == KEYS_IN_THE_GUIDE
    assert {
        "_training_iteration": 2,
        "done": True,
        "episodes_total": None,
        "epoch": 1,
        "experiment_tag": "0",
        "hostname": socket.gethostname(),
        "iterations_since_restore": 2,
        "timesteps_since_restore": 0,
        "timesteps_total": None,
        "training_iteration": 2,
    }.items() <= printed.items()
    assert datetime.strptime(printed["date"], "%Y-%m-%d_%H-%M-%S") == datetime.fromtimestamp(printed["timestamp"])
    assert printed["_time_this_iter_s"] > 0
    assert 0 < printed["time_this_iter_s"] <= printed["time_total_s"] == printed["time_since_restore"]
    assert re.fullmatch("[0-9a-f]{32}", printed["experiment_id"])
    assert re.fullmatch("[0-9a-f]{5}_00000", printed["trial_id"])
    assert printed["config"] == ran.result.config
    assert [type(printed[name]) for name in ("timestamp", "_timestamp", "pid", "warmup_time")] == [int, int, int, float]
    assert printed["pid"] != os.getpid()
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", printed["node_ip"])


def test_ids_and_the_config_look_as_in_the_guide(ran):
    metrics = ran.result.metrics
    assert re.fullmatch(r"[0-9a-f]{32}", metrics["experiment_id"])
    assert re.fullmatch(r"[0-9a-f]{5}_\d{5}", metrics["trial_id"])
    assert metrics["config"] == {"num_epochs": 2}, "as it was given to the trainer"


def test_the_dataframe_has_a_row_for_each_iteration(ran):
    table = ran.result.metrics_dataframe
    assert table["epoch"].tolist() == [0, 1]
    assert table["training_iteration"].tolist() == [1, 2]
    assert str(table) in ran.printed
    assert set(table.columns) >= KEYS_IN_THE_GUIDE
    last = table.iloc[-1]
    assert {name: last[name] for name in KEYS_IN_THE_GUIDE} == ran.result.metrics


def test_without_checkpoints_and_errors_the_result_has_none(ran):
    assert ran.result.checkpoint is None
    assert ran.result.best_checkpoints == []
    assert ran.result.error is None


def test_the_log_directory_is_a_local_one_named_after_the_trainer(ran):
    assert ran.lines[-1] == str(ran.result.log_dir)
    assert Path(ran.result.log_dir).is_dir()
    assert re.match(r"TorchTrainer_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", Path(ran.result.log_dir).name)
