"""A training that reports very often: what its driver holds does not grow, and its result is complete."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc

import trainlib
from tests.integration.led_by_hand import abandon, no_fetch
from trainlib import DataParallelTrainer, RunConfig
from trainlib._execution.events import Report
from trainlib._registry.store import current_store
from trainlib._training.history_rows import FILE
from trainlib._training.opening import open_training
from trainlib._training.training import Training

REPORTS = 10_000
BYTES_EACH = 50
"""What may be kept of a report. A number takes 32, a dict of a few some hundred."""


def train_func(config):
    raise AssertionError("nobody runs it here")


def opened(name: str) -> Training:
    training = open_training(DataParallelTrainer(train_func, run_config=RunConfig(name=name, verbose=0)).inspect())
    training._record.attempt_starts()
    return training


def report(training: Training, iterations: range) -> None:
    for iteration in iterations:
        training.report(Report(iteration, {"loss": 1.0 / iteration}, None, time.time(), 0.1), fetch=no_fetch)


def kept_by_trainlib() -> int:
    """How many bytes that trainlib's own lines have allocated are still there. Servers' clients hold some of their own."""
    ours = tracemalloc.Filter(True, f"{os.path.dirname(trainlib.__file__)}/*")
    return sum(each.size for each in tracemalloc.take_snapshot().filter_traces([ours]).traces)


def test_what_a_driver_keeps_does_not_grow_with_reports_and_another_process_has_all_rows(registry):
    with current_store().in_use():
        training = opened("very-long")
        report(training, range(1, REPORTS // 2))
        training.run.metrics.flush()
        gc.collect()
        tracemalloc.start()
        try:
            report(training, range(REPORTS // 2, REPORTS + 1))
            training.run.metrics.flush()
            training._logs.close()  # what waits to be written is bounded
            gc.collect()
            kept = kept_by_trainlib()
        finally:
            tracemalloc.stop()
        assert kept / (REPORTS // 2) < BYTES_EACH, f"{kept / (REPORTS // 2):.0f} bytes a report"
        frame = training.so_far().metrics_dataframe
        assert frame["training_iteration"].tolist() == list(range(1, REPORTS + 1))

        rows_in_file = training.run.log_dir / FILE
        for last, has_file in ((REPORTS + 10, True), (REPORTS + 20, False)):  # without it, as on another machine
            abandon(training.run)
            if not has_file:
                rows_in_file.unlink()
            training = opened("very-long")
            assert training.run.continued
            report(training, range(last - 20, last + 1))
            frame = training.so_far().metrics_dataframe
            assert frame["training_iteration"].tolist() == list(range(1, last + 1))
            assert frame["loss"].tolist() == [1.0 / iteration for iteration in range(1, last + 1)]
            training.run.metrics.flush()
        training.close(None)
