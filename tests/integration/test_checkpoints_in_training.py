"""Checkpoints inside a training function, after it, and as the start of another training."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    session,
)
from trainlib import _storage as storage
from trainlib._registry.models import promote_checkpoint
from trainlib.callbacks import LoggerCallback
from trainlib.torch import TorchCheckpoint, TorchTrainer

TWO = ScalingConfig(num_workers=2)


def saves_of_all_kinds() -> dict:
    """After each report, what get_checkpoint() gives on this rank."""
    rank, seen = session.get_world_rank(), {"at first": session.get_checkpoint()}
    weights = torch.zeros(1)
    session.report({"step": 0}, checkpoint=Checkpoint.from_dict({"rank": rank, "weights": weights}))
    weights += 1  # the training goes on, and what was saved stays as it was
    held = session.get_checkpoint()
    torch.distributed.barrier()  # else rank 0 may be ahead, and have saved a newer one
    with TemporaryDirectory() as folder:
        Path(folder, "rank.txt").write_text(str(rank))
        mine = Checkpoint.from_directory(folder) if rank == 0 else None
        session.report({"step": 1}, checkpoint=mine)
    seen["directory"] = session.get_checkpoint().to_dict()
    torch.distributed.barrier()
    session.save_checkpoint(rank=rank, epoch=7)
    seen["saved"] = session.load_checkpoint()
    torch.distributed.barrier()
    model = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, rank)
    session.report({"step": 2}, checkpoint=TorchCheckpoint.from_model(model, preprocessor={"mean": 2.0}))
    newest = session.get_checkpoint()
    seen["model"] = type(newest).__name__, newest.get_model().weight.tolist(), newest.get_preprocessor()
    seen["dict"] = held.to_dict()  # one that a newer one has replaced is still there for who holds it
    return seen


def test_checkpoints_of_a_training(registry):
    result = TorchTrainer(saves_of_all_kinds, scaling_config=TWO).fit()

    # All ranks see rank 0's newest one, also a directory that is deleted after its report.
    for seen in result.returned:
        assert seen["at first"] is None
        assert (seen["dict"]["rank"], seen["dict"]["weights"].item()) == (0, 0.0)
        assert seen["directory"] == {"rank.txt": b"0"}
        assert (seen["saved"]["rank"], seen["saved"]["epoch"]) == (0, 7)
        assert seen["model"] == ("TorchCheckpoint", [[0.0, 0.0]], {"mean": 2.0})

    # A checkpoint comes back as what it was saved as.
    assert isinstance(result.checkpoint, TorchCheckpoint)
    assert result.checkpoint.get_model().weight.tolist() == [[0.0, 0.0]]
    assert result.checkpoint.get_preprocessor() == {"mean": 2.0}
    assert [type(each) for each, _ in result.best_checkpoints] == [Checkpoint, Checkpoint, Checkpoint, TorchCheckpoint]

    # Another training starts from it by its id, or as a model of the registry.
    experiment = registry.get_run(result.run_id).info.experiment_id
    models = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'")
    (model_id,) = [model.model_id for model in models if model.name == "checkpoint_000003"]
    promote_checkpoint(model_id, "of-all-kinds", "champion")
    for name in (model_id, f"models:/{model_id}", "models:/of-all-kinds@champion", "models:/of-all-kinds/1"):
        start = DataParallelTrainer(print, resume_from_checkpoint=name).resume_from_checkpoint
        assert isinstance(start, TorchCheckpoint)
        assert start.path == result.checkpoint.path
        assert start.get_preprocessor() == {"mean": 2.0}, "what the registry has is trusted"
    for missing in ("m-" + "0" * 32, "models:/nobody@best"):
        with pytest.raises((LookupError, FileNotFoundError), match=r"nobody|0000"):
            DataParallelTrainer(print, resume_from_checkpoint=missing)


class Saves(LoggerCallback):
    """Reads each checkpoint when it hears of it."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def log_trial_save(self, trial: Any) -> None:
        self.epochs.append(trial.checkpoint.to_dict()["epoch"])


def counts_and_dies_once(config: dict) -> list[int]:
    done = session.get_checkpoint().to_dict()["epoch"] + 1
    for epoch in range(done, 8):
        if session.get_context().get_attempt() == 1 and epoch == 6:
            if session.get_world_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # it is ended
        session.report(
            {"epoch": epoch}, checkpoint=Checkpoint.from_dict({"epoch": epoch, "rank": session.get_world_rank()})
        )
        assert session.get_checkpoint().to_dict()["epoch"] == epoch
    return [done, session.get_context().get_attempt()]


def test_num_to_keep_0_writes_nothing_and_a_retry_still_resumes(tmp_path, registry):
    """It starts from a path, is killed, and resumes from what only Ray's memory has."""
    start = Checkpoint.from_dict({"epoch": 2}).to_directory(tmp_path / "start")
    before = {path for path in storage.home().rglob("*") if "checkpoint" in path.name}
    saves = Saves()
    result = DataParallelTrainer(
        counts_and_dies_once,
        scaling_config=TWO,
        run_config=RunConfig(
            checkpoint_config=CheckpointConfig(num_to_keep=0),
            failure_config=FailureConfig(max_failures=1),
            callbacks=[saves],
        ),
        resume_from_checkpoint=start,
    ).fit()

    first, attempt = result.returned[0]
    assert attempt == 2
    assert 3 < first <= 6, "it went on from the newest checkpoint, not from the one that it was given"
    assert result.checkpoint is not None
    assert result.checkpoint.to_dict()["epoch"] == 7
    assert result.checkpoint.to_dict()["rank"] == 0
    assert Checkpoint(result.checkpoint.to_directory(tmp_path / "kept")).to_dict()["epoch"] == 7
    assert result.best_checkpoints == []
    assert saves.epochs == list(range(3, 8)), "callbacks hear of each"
    experiment = registry.get_run(result.run_id).info.experiment_id
    assert registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'") == []
    assert {path for path in storage.home().rglob("*") if "checkpoint" in path.name} == before
