"""What the user's callbacks rely on."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import wandb
from mlflow import MlflowClient

from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib.callbacks import (
    Callback,
    CSVLoggerCallback,
    LoggerCallback,
    MLflowLoggerCallback,
    WandbLoggerCallback,
)
from trainlib.torch import TorchTrainer, TorchWorkerProfiler


class Saves(LoggerCallback):
    """Reads each checkpoint when it hears of it, as a callback that copies it elsewhere would."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def log_trial_save(self, trial: Any) -> None:
        self.steps.append(trial.checkpoint.to_dict()["step"])


class Broken(Callback):
    def on_trial_result(self, **info: Any) -> None:
        raise ConnectionError("no route")


class Order(Callback):
    """Remembers what it was called with, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.start: Checkpoint | None = None

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.start = trial.checkpoint

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict, **info: Any) -> None:
        self.seen.append(("result", iteration))

    def on_checkpoint(self, iteration: int, trials: Any, trial: Any, checkpoint: Checkpoint, **info: Any) -> None:
        assert checkpoint.to_dict()["step"] == iteration
        self.seen.append(("checkpoint", iteration))


def save_each_step() -> None:
    for step in range(1, 5):
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))


def test_callbacks_hear_of_each_checkpoint_once_it_can_be_read(capfd):
    saves, order, start = Saves(), Order(), Checkpoint.from_dict({"step": 0})
    run_config = RunConfig(callbacks=[Broken(), saves, order], verbose=0)
    DataParallelTrainer(save_each_step, run_config=run_config, resume_from_checkpoint=start).fit()
    assert order.start is not None
    assert order.start.to_dict() == {"step": 0}
    on_screen = [line for line in capfd.readouterr().err.splitlines() if line.startswith("the callback")]
    assert len(on_screen) == 1, "at verbose=0, too"
    assert on_screen[0].startswith("the callback Broken raised ConnectionError in on_trial_result(): no route")
    assert saves.steps == [1, 2, 3, 4]
    assert [iteration for kind, iteration in order.seen if kind == "result"] == [1, 2, 3, 4]
    assert [iteration for kind, iteration in order.seen if kind == "checkpoint"] == [1, 2, 3, 4]
    for step in range(1, 5):
        assert order.seen.index(("result", step)) < order.seen.index(("checkpoint", step))


def profiled(config: dict[str, Any]) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    profiler = TorchWorkerProfiler()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=profiler.trace_handler,
    ) as trace:
        for epoch in range(config["num_epochs"]):
            torch.ones(8, 8).matmul(torch.ones(8, 8))
            trace.step()
            checkpoint = Checkpoint.from_dict({"epoch": epoch})
            metrics = {"epoch": epoch, **profiler.get_and_clear_profile_traces()}
            session.report(metrics, checkpoint=checkpoint)


def test_what_loggers_and_profilers_leave_in_the_folder_and_in_mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    to_mlflow = MLflowLoggerCallback(
        tracking_uri="./mlruns", experiment_name="profiles", tags={"team": "digits", "round": 2}, save_artifact=True
    )
    result = TorchTrainer(
        profiled,
        train_loop_config={"num_epochs": 3},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(callbacks=[CSVLoggerCallback(), WandbLoggerCallback(project="digits"), to_mlflow]),
    ).fit()
    wandb.teardown()

    folder = Path(result.log_dir)
    for rank in (0, 1):
        trace = json.loads((folder / "pytorch_profiler" / f"rank_{rank}.pt.trace.json").read_text())
        assert any(event.get("name") == "aten::matmul" for event in trace["traceEvents"])
    assert len(list((folder / "pytorch_profiler").iterdir())) == 2
    with open(folder / "progress.csv", newline="") as table:
        assert [(row["training_iteration"], row["epoch"]) for row in csv.DictReader(table)] == [
            ("1", "0"),
            ("2", "1"),
            ("3", "2"),
        ]
    assert len(list(folder.glob(f"wandb/offline-run-*/run-{result.run_id}.wandb"))) == 1

    assert (tmp_path / "mlruns" / "mlflow.db").exists()
    client = MlflowClient(f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    run = client.get_run(result.run_id)
    assert client.get_experiment(run.info.experiment_id).name == "profiles"
    assert (run.data.tags["team"], run.data.tags["round"]) == ("digits", "2")

    def names(path: str) -> set[str]:
        return {Path(each.path).name for each in client.list_artifacts(result.run_id, path)}

    assert names("pytorch_profiler") == {"rank_0.pt.trace.json", "rank_1.pt.trace.json"}
    assert {"progress.csv", "pytorch_profiler", "rank_0.log", "rank_1.log"} <= names("logs")
    logs = Path(client.download_artifacts(result.run_id, "logs", str(tmp_path)))
    for complete in ("result.json", "rank_1.log"):
        assert (logs / complete).read_text() == (folder / complete).read_text()
    assert len((logs / "result.json").read_text().splitlines()) == 3
    assert json.loads((logs / "run.json").read_text())["status"] == "FINISHED"
    assert not {name for name in names("logs") if name.startswith("checkpoint_")}, "checkpoints are in MLflow anyway"
