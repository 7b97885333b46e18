"""Bad input gets an error that names the thing, what was found, and what to do."""

from __future__ import annotations

import math
import re
import threading
import time

import pytest

from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    FailureConfig,
    Result,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
)
from trainlib._execution.causes import Cause
from trainlib.errors import (
    CapacityError,
    CheckpointNotFoundError,
    ConnectionFailedError,
    MetricError,
    OutOfStepError,
    RunNotFoundError,
    ScoreNotReportedError,
    SessionUnavailableError,
)
from trainlib.torch import TorchTrainer
from trainlib.tune import Tuner

TWO = ScalingConfig(num_workers=2)


def quick() -> None:
    session.report({"epoch": 0})


def test_more_workers_than_the_cluster_holds():
    started = time.monotonic()
    with pytest.raises(
        TrainingFailedError, match=r"asked for 500 worker\(s\).*500 CPU; the cluster has \d+: lower"
    ) as caught:
        DataParallelTrainer(quick, scaling_config=ScalingConfig(num_workers=500)).fit()
    assert caught.value.cause is Cause.CAPACITY
    assert isinstance(caught.value.__cause__, CapacityError)
    assert time.monotonic() - started < 60, "known at once, so there is nothing to wait for"


def test_a_gpu_where_there_is_none():
    with pytest.raises(TrainingFailedError, match=r"2 GPU; the cluster has 0: set use_gpu=False"):
        DataParallelTrainer(quick, scaling_config=ScalingConfig(num_workers=2, use_gpu=True)).fit()


def test_more_nodes_than_there_are():
    with pytest.raises(TrainingFailedError, match=r"STRICT_SPREAD.*1 node\(s\): use placement_strategy"):
        DataParallelTrainer(
            quick, scaling_config=ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD")
        ).fit()


def reports_vector() -> None:
    import torch

    session.report({"loss": torch.zeros(3)})


def test_a_metric_that_belongs_into_a_checkpoint():
    with pytest.raises(TrainingFailedError) as caught:
        TorchTrainer(reports_vector, scaling_config=TWO).fit()
    assert isinstance(caught.value.__cause__, MetricError)
    assert "metric 'loss' is a Tensor of shape (3,). Put tensors in a checkpoint" in str(caught.value)


def reports_non_finite() -> None:
    for value in (1.0, math.nan, math.inf, -math.inf, 2.0):
        session.report({"loss": value})


def test_nan_and_infinity_are_kept_and_told(registry, capfd):
    result = DataParallelTrainer(reports_non_finite, scaling_config=TWO).fit()

    assert result.metrics_dataframe["loss"].tolist()[2:4] == [math.inf, -math.inf]
    points = registry.get_metric_history(result.run_id, "loss")
    assert [point.step for point in points] == [1, 2, 3, 4, 5]
    assert [math.isnan(point.value) for point in points] == [False, True, True, True, False]
    assert "metric 'loss' is nan at iteration 2" in capfd.readouterr().err


def saves_without_score() -> None:
    session.report({"loss": 0.5}, checkpoint=Checkpoint.from_dict({"epoch": 0}))


def test_a_score_that_was_never_reported():
    config = RunConfig(checkpoint_config=CheckpointConfig(checkpoint_score_attribute="accuracy"))
    with pytest.raises(TrainingFailedError) as caught:
        DataParallelTrainer(saves_without_score, scaling_config=TWO, run_config=config).fit()
    assert isinstance(caught.value.__cause__, ScoreNotReportedError)
    assert "checkpoint_score_attribute is 'accuracy'" in str(caught.value)
    assert "Its dict has 'epoch', the metrics reported with it are 'loss'" in str(caught.value)


def one_rank_reports_less() -> None:
    for epoch in range(3 - session.get_world_rank()):
        session.report({"epoch": epoch})


def test_ranks_that_do_not_report_equally_often():
    with pytest.raises(TrainingFailedError) as caught:
        DataParallelTrainer(one_rank_reports_less, scaling_config=TWO).fit()
    assert isinstance(caught.value.__cause__, OutOfStepError)
    assert "rank 0 called report() 3 times, rank 1 returned after 2" in str(caught.value)


def test_a_checkpoint_that_is_not_there(tmp_path):
    missing = tmp_path / "nowhere"
    with pytest.raises(CheckpointNotFoundError, match=f"no checkpoint directory at {missing}: found nothing"):
        Checkpoint.from_directory(missing)
    with pytest.raises(CheckpointNotFoundError, match=f"no checkpoint at {missing}: nothing is there"):
        DataParallelTrainer(quick, resume_from_checkpoint=Checkpoint(missing))


def test_a_training_function_that_cannot_be_sent_to_the_workers():
    lock = threading.Lock()

    def train_func():
        with lock:
            session.report({"epoch": 0})

    with pytest.raises(
        TypeError,
        match=r"the training function train_func cannot be sent to the workers: it uses the variable lock of ",
    ):
        DataParallelTrainer(train_func, scaling_config=TWO).fit()


def test_a_storage_path_that_cannot_be_written(tmp_path, newest_run):
    (tmp_path / "file").touch()
    config = RunConfig(name="unwritable", storage_path=str(tmp_path / "file" / "below"))
    with pytest.raises(NotADirectoryError):
        DataParallelTrainer(quick, scaling_config=TWO, run_config=config).fit()
    assert newest_run("unwritable").info.status == "FAILED", "it does not look as if it ran"


def raises_beside_a_busy_rank() -> None:
    """Rank 0 holds the interpreter for longer than a healthy worker may stay silent."""
    session.report({"epoch": 0})
    if session.get_world_rank() == 1:
        time.sleep(1.0)
        raise ValueError("a banana")
    re.match(r"(a+)+$", "a" * 29 + "b")


def test_a_busy_rank_does_not_hide_another_ones_error():
    config = RunConfig(failure_config=FailureConfig(max_failures=3, retry_user_errors="never"))
    with pytest.raises(TrainingFailedError, match=r"rank 1 .* raised ValueError: a banana") as caught:
        DataParallelTrainer(raises_beside_a_busy_rank, scaling_config=TWO, run_config=config).fit()
    assert caught.value.cause is Cause.USER
    assert caught.value.attempt == 1


def test_a_session_function_outside_of_a_training_function():
    with pytest.raises(SessionUnavailableError, match=r"report\(\) was called outside of a training function"):
        session.report({"loss": 1.0})


def test_a_run_that_does_not_exist():
    with pytest.raises(RunNotFoundError, match="no training named 'nobody'"):
        TorchTrainer.restore("nobody")


def test_a_run_is_restored_by_what_made_it():
    result = DataParallelTrainer(quick).fit()
    with pytest.raises(
        ValueError, match=r"was trained with function: restore it with the trainer that made it, not with Torch"
    ):
        TorchTrainer.restore(result)
    with pytest.raises(TypeError, match=r"DataParallelTrainer.restore\(\) got unknown argument\(s\): torch_config"):
        DataParallelTrainer.restore(result, torch_config=None)
    with pytest.raises(ValueError, match=r"is a training, not a sweep\. Restore it with its trainer"):
        Tuner.restore(result.run_id)
    sweep = Tuner(quick, run_config=RunConfig(verbose=0)).fit()
    with pytest.raises(TypeError, match=r"is a sweep: restore it with Tuner.restore"):
        DataParallelTrainer.restore(sweep.run_id)
    folder = sweep[0].log_dir.parent
    assert len(Tuner.restore(folder).get_results()) == 1
    with pytest.raises(TypeError, match=r"is the folder of a sweep\. Get its results with Tuner\.restore"):
        Result.from_path(folder)
    again = DataParallelTrainer.restore(result, scaling_config=TWO)
    assert (again.restored_run, again.scaling_config.num_workers) == (result.run_id, 2)


UNREACHABLE = """
    import time
    from trainlib import session, ScalingConfig
    from trainlib.torch import TorchTrainer

    def train_func():
        session.report({"epoch": 0})

    started = time.monotonic()
    try:
        TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
    finally:
        print("seconds", time.monotonic() - started)
"""


@pytest.mark.parametrize(
    ("variable", "address", "message"),
    [
        (
            "MLFLOW_TRACKING_URI",
            "http://127.0.0.1:9",
            "no MLflow server answers at MLFLOW_TRACKING_URI=http://127.0.0.1:9",
        ),
        (
            "PREFECT_API_URL",
            "http://127.0.0.1:9/api",
            "no Prefect server answers at PREFECT_API_URL=http://127.0.0.1:9/api",
        ),
        ("RAY_ADDRESS", "127.0.0.1:9", "no Ray cluster answers at RAY_ADDRESS=127.0.0.1:9"),
        ("RAY_TMPDIR", "/proc/nowhere", "Ray did not start on this machine: "),
    ],
)
def test_a_server_that_cannot_be_reached_or_started(driver, variable, address, message):
    process = driver(UNREACHABLE, own_ray=True, **{variable: address})
    assert process.wait() == 1
    assert message in process.output, process.output
    assert process.output.count("Traceback") <= 3, process.output


def test_the_error_for_an_unreachable_server_is_a_connection_error(monkeypatch):
    from trainlib._registry.client import connect
    from trainlib._registry.store import TrackingStore

    with pytest.raises(ConnectionFailedError, match="Start it, correct the address, or unset it"):
        connect(TrackingStore("http://127.0.0.1:9"))
