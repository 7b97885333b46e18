"""What becomes of a sweep when trials fail."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.integration.leftovers import assert_nothing_left_behind
from tests.integration.shown_sweeps import artifacts_of, children
from trainlib import (
    Checkpoint,
    DataParallelTrainer,
    FailureConfig,
    RunConfig,
    session,
    tune,
)
from trainlib.errors import SweepFailedError
from trainlib.tune import TuneConfig, Tuner
from trainlib.xgboost import XGBoostTrainer

QUIET = RunConfig(verbose=0)


def test_one_failing_trial_does_not_end_the_sweep(capfd, registry):
    def train_func(config):
        if config["x"] > 1:
            raise ValueError("the learning rate is a banana")
        session.report({"loss": config["x"]})

    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([1, 2, 3])},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=RunConfig(name=f"failing-{os.getpid()}"),
    ).fit()
    assert results.num_errors == 2
    assert results.num_terminated == 1
    with pytest.raises(ValueError, match=r"^the learning rate is a banana") as caught:
        raise results[1].error
    assert re.search(r"rank 0 \(node [\d.]+, pid \d+\), in attempt 1", caught.value.__notes__[0])
    assert results.get_best_result().config == {"x": 1}
    assert [run.info.status for run in children(registry, results.run_id)] == ["FINISHED", "FAILED", "FAILED"]
    assert "failed 2x: ValueError: the learning rate is a banana" in capfd.readouterr().err


def test_a_point_that_makes_no_training_is_one_failed_trial(registry):
    def width(settings):
        return 1 // settings["train_loop_config"]["x"]  # fails where x is 0

    def train_func(config):
        session.report({"width": config["width"]})

    results = Tuner(
        DataParallelTrainer(train_func),
        param_space={
            "train_loop_config": {"x": tune.grid_search([1, 0]), "width": tune.sample_from(width)},
            "scaling_config": {"num_workers": tune.grid_search([1, 0])},
        },
        run_config=QUIET,
    ).fit()
    assert [result.error is None for result in results] == [True, False, False, False]
    assert "its settings make no training: 1 validation error for ScalingConfig num_workers" in str(results[1].error)
    assert "division or modulo by zero" in str(results[2].error)
    runs = children(registry, results.run_id)
    assert [run.info.status for run in runs] == ["FINISHED", "FAILED", "FAILED", "FAILED"]
    assert [run.info.run_id for run in runs] == [result.run_id for result in results]
    known = Tuner.restore(results).get_results()
    assert [str(error) for error in known.errors] == [str(error) for error in results.errors]


def test_fail_fast_ends_the_sweep_at_the_first_failure(registry):
    """Of a trial that is ended so, one rank may be stopped while another one is in a round that needs both."""

    def train_func(config):
        from xgboost import collective

        if config["x"] == 1:
            raise ValueError("no")
        if session.get_world_rank() == 1:
            session.report({"loss": 1.0})
            session.get_checkpoint()  # waits for rank 0, until it is stopped
        collective.allreduce(np.array([1.0]), collective.Op.SUM)

    started = time.monotonic()
    with pytest.raises(SweepFailedError, match="a trial failed, and fail_fast is set: rank 0") as caught:
        Tuner(
            XGBoostTrainer(train_func),
            param_space={
                "train_loop_config": {"x": tune.grid_search([0, 1, 2, 3])},
                "scaling_config": {
                    "num_workers": tune.sample_from(lambda settings: 2 - settings["train_loop_config"]["x"] % 2)
                },
            },
            tune_config=TuneConfig(metric="loss", mode="min", max_concurrent_trials=2),
            run_config=RunConfig(verbose=0, failure_config=FailureConfig(fail_fast=True)),
        ).fit()
    assert time.monotonic() - started < 30
    assert caught.value.results.num_errors == 1
    assert registry.get_run(caught.value.results.run_id).info.status == "FAILED"
    statuses = {run.data.params["x"]: run.info.status for run in children(registry, caught.value.results.run_id)}
    assert statuses == {"0": "KILLED", "1": "FAILED"}, "the other one did not come to its end, and can go on"
    artifacts = artifacts_of(caught.value.results.flow_run_id)
    assert "failed 1x: ValueError: no" in artifacts["sweep-summary"]
    assert_nothing_left_behind()


def test_a_lost_worker_is_a_retry_of_its_trial_from_its_checkpoint(tmp_path):
    def train_func(config):
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        for epoch in range(start, 4):
            session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
            mark = config["marks"] / f"killed-{config['x']}"
            if epoch == 2 and config["x"] == 1 and not mark.exists():
                while not (
                    Path(session.get_trial_dir()) / "checkpoints" / "checkpoint_000002"
                ).exists():  # until it is kept
                    time.sleep(0.05)
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1]), "marks": tmp_path},
        run_config=RunConfig(verbose=0, failure_config=FailureConfig(max_failures=1)),
    ).fit()
    assert results.num_errors == 0
    assert [result.attempts for result in results] == [1, 2]
    assert results[1].metrics["start"] == 3
    assert results[1].metrics_dataframe["training_iteration"].tolist() == [1, 2, 3, 4]


def test_trials_that_failed_are_tried_again_when_asked_for(tmp_path):
    def train_func(config):
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        for epoch in range(start, 3):
            session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
            if epoch == 1 and config["x"] == 1 and not (config["folder"] / "mended").exists():
                raise ValueError("not yet")

    name = f"mended-{os.getpid()}"
    first = Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1]), "folder": tmp_path},
        run_config=RunConfig(verbose=0, name=name),
    ).fit()
    assert first.num_errors == 1
    known = Tuner.restore(name).get_results()[1].error
    assert (type(known), str(known)) == (ValueError, "not yet"), "it is known to other processes, too"
    assert str(first[1].error) == "not yet"
    (tmp_path / "mended").touch()
    again = Tuner.restore(name, resume_errored=True).fit()
    assert again.num_errors == 0
    assert (again[1].metrics["epoch"], again[1].metrics["start"]) == (2, 2)
    assert [result.run_id for result in again] == [result.run_id for result in first]
