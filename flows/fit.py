"""``Trainer.fit()``, as a run of the flow ``train``."""

from __future__ import annotations

from flows import local
from flows.spec import TrainSpec
from flows.train import train
from trainlib.result import Result
from trainlib.trainer import DataParallelTrainer


def fit(trainer: DataParallelTrainer) -> Result:
    """Train, and wait for it."""
    return local.run(lambda: train(TrainSpec.of(trainer)), trainer.scaling_config, trainer.backend_config)
