"""Weights & Biases, in its offline mode."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import wandb
from wandb.proto.wandb_internal_pb2 import Record
from wandb.sdk.internal.datastore import DataStore

from trainlib.callbacks import Trial, WandbLoggerCallback


def records(file: Path) -> list[Record]:
    """What W&B would send."""
    store, found = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        found.append(record)
    return found


def rows(found: list[Record]) -> list[dict[str, Any]]:
    values = [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in found
        if record.WhichOneof("record_type") == "history"
    ]
    return [{name: value for name, value in row.items() if name in ("loss", "_step", "pid")} for row in values]


def test_trials_side_by_side_are_runs_with_config_and_curve(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    callback = WandbLoggerCallback(project="digits", group="sweep", tags=["mine"])
    trials = [
        Trial(
            f"a{number}", "TorchTrainer", {"lr": number, "api_key": "abc"}, str(tmp_path / str(number)), f"run{number}"
        )
        for number in range(2)
    ]
    for trial in trials:
        callback.log_trial_start(trial)
    for iteration in (1, 2):
        for trial in trials:
            callback.log_trial_result(iteration, trial, {"loss": iteration / 2, "pid": 7, "config": trial.config})
    callback.log_trial_end(trials[0], failed=True)
    callback.log_trial_end(trials[1])
    wandb.teardown()

    for number, exit_code in ((0, 1), (1, 0)):
        (file,) = (tmp_path / str(number)).rglob("*.wandb")
        found = records(file)
        (run,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
        assert (run.run_id, run.project, run.run_group) == (f"run{number}", "digits", "sweep")
        assert run.display_name == f"TorchTrainer_a{number}"
        assert list(run.tags) == ["mine"]
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        assert (config["lr"], config["api_key"]) == (number, "********")
        assert rows(found) == [{"loss": 0.5, "_step": 1}, {"loss": 1.0, "_step": 2}]
        assert [r.exit.exit_code for r in found if r.WhichOneof("record_type") == "exit"] == [exit_code]


def test_what_is_wrong_is_said_before_anything_starts(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="api_key and api_key_file are both given"):
        WandbLoggerCallback(api_key="a", api_key_file="b")
    with pytest.raises(FileNotFoundError):
        WandbLoggerCallback(api_key_file=str(tmp_path / "key"))
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'trainlib\[wandb\]'"):
        WandbLoggerCallback()
