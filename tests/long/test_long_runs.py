"""A process that trains for days: what it holds does not grow with what it has done.

`make test-long` runs all of it, and `make test-long SCALE=0.1` a tenth.
"""

from __future__ import annotations

import os
import resource

import pytest

from tests.long.footprint import Footprint, Peak
from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session, tune
from trainlib.tune import TuneConfig, Tuner

SCALE = float(os.environ.get("SCALE", "1"))
TRAININGS, TRIALS, REPORTS = round(200 * SCALE), round(300 * SCALE), round(200_000 * SCALE)
WARM_UP = 25
MORE = 10.0
"""Megabytes that a process may have grown by, whatever it has done: memory is not given back to the last page."""
QUEUES = 30.0
"""Megabytes that reports may take on their way."""
QUIET = RunConfig(verbose=0)

pytestmark = pytest.mark.timeout(3600)


def train_briefly(config):
    for step in range(3):
        session.report({"loss": config["x"] / (step + 1)}, checkpoint=None)


def train_once(number: int) -> None:
    result = DataParallelTrainer(
        train_briefly,
        train_loop_config={"x": number},
        scaling_config=ScalingConfig(num_workers=1),
        run_config=QUIET,
    ).fit()
    assert result.metrics["loss"] == number / 3
    assert len(result.metrics_dataframe) == 3


def test_many_trainings_in_one_process_leave_nothing_in_it():
    for number in range(10):
        train_once(number)
    before = Footprint.now()
    for number in range(TRAININGS):
        train_once(number)
        if number % 25 == 0:
            print(number, Footprint.now(), flush=True)
    before.assert_flat(Footprint.now(), megabytes=10 + 0.1 * TRAININGS)


def sweep(trials: int) -> None:
    grid = Tuner(
        DataParallelTrainer(train_briefly, scaling_config=ScalingConfig(num_workers=1)),
        param_space={"train_loop_config": {"x": tune.grid_search(list(range(trials)))}},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=QUIET,
    ).fit()
    assert len(grid) == trials
    assert grid.num_errors == 0
    assert grid.get_best_result().metrics["loss"] == 0


def test_a_long_sweep_leaves_nothing_in_the_process():
    sweep(10)
    before = Footprint.now()
    print(before)
    sweep(TRIALS)
    print(Footprint.now())
    sweep(50)
    print(Footprint.now())
    before.assert_flat(Footprint.now(), megabytes=10 + 0.1 * TRIALS)


def train_for_long(config):
    """Returns the peak memory of this worker, in MB, after a tenth and at the end."""
    peaks = []
    for step in range(config["reports"]):
        session.report({"loss": 1.0 / (step + 1), "step": step})
        if step in (config["reports"] // 10, config["reports"] - 1):
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    return peaks


def test_memory_does_not_grow_with_the_number_of_reports():
    def train(reports: int):
        return DataParallelTrainer(
            train_for_long,
            train_loop_config={"reports": reports},
            scaling_config=ScalingConfig(num_workers=1),
            run_config=QUIET,
        ).fit()

    train(20_000)  # so many fill all queues
    before = Footprint.now()
    with Peak() as peak:
        result = train(REPORTS)
    before.assert_flat(Footprint.now(), megabytes=MORE)
    assert peak.megabytes - before.megabytes <= QUEUES, "the driver has grown while it trained"
    (early, at_the_end) = result.returned[0]
    assert at_the_end - early <= QUEUES, "the worker has grown"
    frame = result.metrics_dataframe
    assert frame["training_iteration"].tolist() == list(range(1, REPORTS + 1))
    assert frame["step"].tolist() == list(range(REPORTS))
