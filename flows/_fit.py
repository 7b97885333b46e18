"""``Trainer.fit()`` and ``Tuner.fit()``, as runs of the flows ``train`` and ``sweep``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import ray

from trainlib._importing import without_collecting
from trainlib._platform import joining, record
from trainlib._registry.store import TrackingStore
from trainlib.callbacks._mlflow import store_of
from trainlib.config import RunConfig
from trainlib.flows import _embedded as embedded
from trainlib.flows import _local as local
from trainlib.flows.spec import TrainSpec
from trainlib.flows.train import train
from trainlib.result import Result
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from trainlib.tune._result_grid import ResultGrid
    from trainlib.tune._tuner import Tuner


def fit(trainer: DataParallelTrainer) -> Result:
    """Train, and wait for the result."""
    inspected = trainer.inspect()  # bad data or settings are an error here, before anything starts
    store = store_of(trainer.run_config)
    _announce(trainer.run_config, store)
    return local.run(
        lambda: train(**TrainSpec.of_inspected(inspected).parameters()),
        trainer.settings.gang,
        trainer.backend_config,
        store,
    )


def tune(tuner: Tuner) -> ResultGrid:
    """Run all trials, and wait for the results."""
    with without_collecting():
        from trainlib.flows.sweep import sweep  # here: a training does without it
        from trainlib.flows.tune_spec import TuneSpec

    plan = tuner.plan  # bad data or settings are an error here, before anything starts
    store = store_of(plan.run_config)
    _announce(plan.run_config, store)
    trainer = tuner.trainer.copy_with(run_config=plan.run_config)
    return local.run(
        lambda: sweep(**TuneSpec.of(tuner).parameters()), trainer.settings.gang, trainer.backend_config, store
    )


def _announce(run_config: RunConfig, store: TrackingStore) -> None:
    """Say, in one line, what is joined or started. A process says it once."""
    if ray.is_initialized() or not run_config.verbose:
        return
    platform = record.running()
    line = None
    if platform is not None:
        line = joining.announcement(
            platform, prefect=embedded.platform() is not None, mlflow=store.uri == platform.mlflow
        )
    print(line or "starting Ray, Prefect and MLflow", file=sys.stderr, flush=True)
