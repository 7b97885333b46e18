"""``Trainer.fit()`` and ``Tuner.fit()``, as runs of the flows ``train`` and ``tune``."""

from __future__ import annotations

import sys

import ray

from trainlib.callbacks._mlflow import store_of
from trainlib.flows import _local as local
from trainlib.flows.spec import TrainSpec
from trainlib.flows.train import train
from trainlib.flows.tune import tune as tune_flow
from trainlib.flows.tune_spec import TuneSpec
from trainlib.result import Result
from trainlib.trainer import DataParallelTrainer
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._tuner import Tuner


def fit(trainer: DataParallelTrainer) -> Result:
    """Train, and wait for the result."""
    inspected = trainer.inspect()  # bad data or settings are an error here, before anything starts
    if trainer.run_config.verbose and not ray.is_initialized():
        print("starting Ray, Prefect and MLflow", file=sys.stderr, flush=True)
    store = store_of(trainer.run_config)
    return local.run(
        lambda: train(TrainSpec.of_inspected(inspected)), trainer.scaling_config, trainer.backend_config, store
    )


def tune(tuner: Tuner) -> ResultGrid:
    """Run all trials, and wait for the results."""
    plan = tuner.plan  # bad data or settings are an error here, before anything starts
    if plan.run_config.verbose and not ray.is_initialized():
        print("starting Ray, Prefect and MLflow", file=sys.stderr, flush=True)
    trainer = tuner.trainer
    store = store_of(plan.run_config)
    return local.run(lambda: tune_flow(TuneSpec.of(tuner)), trainer.scaling_config, trainer.backend_config, store)
