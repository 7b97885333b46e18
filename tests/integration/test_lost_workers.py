"""A training goes on when workers are killed: from the newest complete checkpoint, in the same MLflow run."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
)
from trainlib._execution.causes import Cause
from trainlib.torch import TorchTrainer

EPOCHS = 8


def train_func(config: dict) -> None:
    """Counts epochs, saves each, and dies once, in epoch 4, in the way that the config says."""
    import torch
    import torch.distributed as dist

    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
    mark = Path(config["mark"])
    for epoch in range(start, EPOCHS):
        dist.all_reduce(torch.ones(1))
        session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
        if epoch == 4 and not mark.exists():
            dist.barrier()
            while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000004").exists():
                time.sleep(0.05)  # until it is kept
            if session.get_world_rank() in config["dying"]:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            dist.barrier()


def trainer(tmp_path: Path, function=train_func, max_failures: int = 1, **config) -> DataParallelTrainer:
    """One with torch only where the function uses it: without, workers start in a third of the time."""
    kind = TorchTrainer if function is train_func else DataParallelTrainer
    return kind(
        function,
        train_loop_config={"mark": str(tmp_path / "died"), **config},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=max_failures)),
    )


@pytest.mark.parametrize("dying", [[1], [0], [0, 1]], ids=["rank 1", "rank 0", "all ranks"])
def test_killed_workers_are_replaced_and_the_training_resumes(tmp_path, curve, registry, dying):
    result = trainer(tmp_path, dying=dying).fit()

    assert result.attempts == 2
    assert result.metrics["epoch"] == EPOCHS - 1
    assert result.metrics["start"] == 5, "the retry resumes after the newest checkpoint, that of epoch 4"
    assert curve(result.run_id, "epoch") == [(epoch + 1, float(epoch)) for epoch in range(EPOCHS)]
    run = registry.get_run(result.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["trainlib.attempts"] == "2"
    assert '"outcome": "worker"' in run.data.tags["trainlib.attempt.001"]
    assert '"resumed_from": "checkpoint_000004"' in run.data.tags["trainlib.attempt.002"]
    note = run.data.tags["mlflow.note.content"]
    assert f"/runs/flow-run/{result.flow_run_id})\n\n### Attempts\n\n1 worker, 1 finished\n" in note
    assert re.search(r"^\| 1\S* \| worker.*\brank \d .* died", note, re.MULTILINE), note
    assert_nothing_left_behind()


def dies_while_saving(config: dict) -> None:
    """Rank 0 is killed in the middle of writing the checkpoint of epoch 2."""

    class Slow:
        """Takes a second to be written, after something of it already has been."""

        def __reduce__(self):
            time.sleep(1.0)
            return (int, ())

    import threading

    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
    mark = Path(config["mark"])
    for epoch in range(start, 4):
        state = {"epoch": epoch, "padding": b"x" * 1_000_000}
        if epoch == 2 and session.get_world_rank() == 0 and not mark.exists():
            time.sleep(1.0)  # let the checkpoint before be committed
            mark.touch()
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
            state["slow"] = Slow()
        session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict(state))


def test_a_checkpoint_that_was_being_written_does_not_count(tmp_path, curve, registry):
    result = trainer(tmp_path, dies_while_saving).fit()

    assert result.metrics["start"] == 2, "epoch 2 was never completely saved, so it is made again"
    assert curve(result.run_id, "epoch") == [(epoch + 1, float(epoch)) for epoch in range(4)]
    experiment = registry.get_run(result.run_id).info.experiment_id
    models = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'")
    assert sorted(model.tags["trainlib.checkpoint"] for model in models) == ["0", "1", "2", "3"]
    assert {str(model.status) for model in models} == {"READY"}
    for model in models:
        index = int(model.tags["trainlib.checkpoint"])
        assert Checkpoint(f"{model.artifact_location}/checkpoint_{index:06d}").to_dict()["epoch"] == index
    assert_nothing_left_behind()


def always_dies(config: dict) -> None:
    session.report({"epoch": 0})
    time.sleep(0.5)
    if session.get_world_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def test_the_budget_ends_the_retries(tmp_path, registry, flow_state):
    with pytest.raises(TrainingFailedError) as caught:
        trainer(tmp_path, always_dies, max_failures=1).fit()

    assert caught.value.cause is Cause.WORKER
    assert caught.value.rank == 1
    assert caught.value.attempt == 2
    assert_nothing_left_behind()


def test_without_a_budget_nothing_is_retried(tmp_path):
    with pytest.raises(TrainingFailedError) as caught:
        trainer(tmp_path, always_dies, max_failures=0).fit()
    assert caught.value.attempt == 1


def test_a_checkpoint_that_was_resumed_from_goes_when_it_is_no_longer_needed(tmp_path, registry):
    one = trainer(tmp_path, dying=[1])
    one.run_config.checkpoint_config = CheckpointConfig(num_to_keep=1)
    result = one.fit()
    assert result.metrics["start"] == 5
    experiment = registry.get_run(result.run_id).info.experiment_id
    models = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'")
    assert [model.name for model in models] == ["checkpoint_000007"]


def repeats(config: dict) -> None:
    """Saves only its first epoch, so that a retry repeats what came after it."""
    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
    mark = Path(config["mark"])
    for epoch in range(start, 6):
        saved = Checkpoint.from_dict({"epoch": epoch}) if epoch == 0 else None
        session.report({"value": epoch * 10, "attempt": session.get_context().get_attempt()}, checkpoint=saved)
        if epoch == 4 and not mark.exists() and session.get_world_rank() == 0:
            time.sleep(1.5)  # all points are recorded by now
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_repeated_iterations_leave_no_second_point(tmp_path, curve):
    result = trainer(tmp_path, repeats).fit()

    assert result.attempts == 2
    assert curve(result.run_id, "value") == [(epoch + 1, epoch * 10.0) for epoch in range(6)]
    table = result.metrics_dataframe
    assert table["training_iteration"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["value"].tolist() == [0, 10, 20, 30, 40, 50]
