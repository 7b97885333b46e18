"""``Trainer.fit()``, as a run of the flow ``train``."""

from __future__ import annotations

import sys

import ray

from flows import local
from flows.spec import TrainSpec
from flows.train import train
from trainlib.result import Result
from trainlib.trainer import DataParallelTrainer


def fit(trainer: DataParallelTrainer) -> Result:
    """Train, and wait for it."""
    # What cannot be read, or sent to workers, is told before anything starts. Files may be others than last time.
    trainer.__dict__.pop("sources", None)
    trainer.sources  # noqa: B018
    trainer.dumps()
    if trainer.run_config.verbose and not ray.is_initialized():
        print("starting Ray, Prefect and MLflow", file=sys.stderr, flush=True)
    return local.run(lambda: train(TrainSpec.of(trainer)), trainer.scaling_config, trainer.backend_config)
