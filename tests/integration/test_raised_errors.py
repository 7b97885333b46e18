"""What becomes of an exception of the training function: what may heal is tried again, a bug is not, and what came of the
training is in its result and in its folder."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from trainlib import (
    Checkpoint,
    DataParallelTrainer,
    FailureConfig,
    Result,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
)
from trainlib._execution.causes import Cause
from trainlib.errors import RunNotFoundError


def test_a_bug_is_given_up_when_it_comes_again_without_a_checkpoint_in_between(registry, capfd):
    class OwnError(RuntimeError):
        """Known to the driver only as the class that it has sent to the workers."""

    def train_func(config):
        attempt = session.get_context().get_attempt()
        rank = session.get_world_rank()
        print(f"rank {rank}, {attempt}, {os.environ['TRAINLIB_ORIG_WORKING_DIR']}")
        if rank == 1:
            Path("my_model").write_text(f"of attempt {attempt}")
        checkpoint = session.get_checkpoint()
        epoch = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        if attempt == 1:
            raise ConnectionError("a peer was lost, which never happens again")
        if attempt < 4:
            session.report({"epoch": epoch}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
        session.report({"unsaved": attempt})
        raise OwnError(f"the same bug, attempt {attempt}")

    trainer = DataParallelTrainer(
        train_func,
        train_loop_config={"lr": 0.1},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=10)),
    )
    with pytest.raises(TrainingFailedError, match="raised OwnError: the same bug, attempt 4") as caught:
        trainer.fit()
    failed = caught.value
    assert (failed.cause, failed.attempt, failed.retry) == (Cause.USER, 4, False)
    assert "FailureConfig(retry_user_errors='always')" in "".join(failed.__notes__)
    assert "a peer was lost, which never happens again" in capfd.readouterr().err

    result = failed.result
    assert result.metrics["unsaved"] == 4
    assert result.checkpoint.to_dict()["epoch"] == 1
    assert result.attempts == 4
    assert result.metrics_dataframe["training_iteration"].tolist() == [1, 2, 3]
    run = registry.get_run(result.run_id)
    assert run.info.status == "FAILED"
    assert run.data.tags["trainlib.flow_run_id"] == result.flow_run_id
    assert result.run_id in result.run_url
    assert result.flow_run_id in result.flow_run_url
    with pytest.raises(OwnError, match=r"^the same bug, attempt 4") as own:
        raise result.error
    assert "in attempt 4" in own.value.__notes__[0]

    log_dir = result.log_dir
    assert {file.name for file in log_dir.iterdir()} == {
        *("run.json", "params.json", "result.json", "progress.csv", "checkpoints"),
        *("rank_0.log", "rank_1.log", "rank_1", "error.txt", "error.pkl"),
    }
    assert json.loads((log_dir / "params.json").read_text()) == {"lr": 0.1}
    assert [json.loads(line).get("unsaved") for line in (log_dir / "result.json").read_text().splitlines()] == [
        *(None, 2, None, 3, 4)  # an attempt that resumes repeats what was not saved
    ]
    with open(log_dir / "progress.csv", newline="") as file:
        assert [row["unsaved"] for row in csv.DictReader(file)] == ["", "2", "", "3", "4"]
    printed = (log_dir / "rank_1.log").read_text().splitlines()
    assert [line for line in printed if not line.startswith("--- attempt")] == [
        f"rank 1, {attempt}, {os.getcwd()}" for attempt in (1, 2, 3, 4)
    ]
    assert len(printed) == 8
    assert (log_dir / "rank_1" / "my_model").read_text() == "of attempt 4", "each rank has a folder of its own"
    checkpoints = log_dir / "checkpoints"
    assert (checkpoints / "newest").resolve() == (checkpoints / "checkpoint_000001").resolve()
    assert (checkpoints / "newest").resolve() == Path(result.checkpoint.path)

    again = Result.from_path(log_dir)
    assert again.metrics == {**result.metrics, "config": {"lr": 0.1}}
    assert again.checkpoint.to_dict() == result.checkpoint.to_dict()
    assert (again.run_id, again.run_url, again.attempts) == (result.run_id, result.run_url, 4)
    assert again.metrics_dataframe["training_iteration"].tolist() == [1, 2, 3]
    with pytest.raises(OwnError, match="the same bug, attempt 4"):
        raise again.error
    assert DataParallelTrainer.restore(log_dir).restored_run == result.run_id
    assert DataParallelTrainer.restore(str(log_dir)).restored_run == result.run_id
    with pytest.raises(RunNotFoundError, match="is not the folder of a training"):
        DataParallelTrainer.restore(checkpoints)
