"""Sweeps that a test leads by hand, without workers, against a real MLflow store."""

from __future__ import annotations

import time
from typing import Any

from trainlib import RunConfig, tune
from trainlib._execution.events import Report
from trainlib._registry.run import RegisteredRun
from trainlib._training.display import Display
from trainlib.tune import TuneConfig, Tuner
from trainlib.tune._sweep import Sweep
from trainlib.tune._trial import SweepTrial

CPUS = {"CPU": 8.0}


def train_func(config):
    raise AssertionError("nobody runs it here")


def begin(name: str, **config: Any) -> Sweep:
    tuner = Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1, 2])},
        tune_config=TuneConfig(metric="loss", mode="min", **config),
        run_config=RunConfig(name=name, verbose=0),
    )
    return Sweep.open(tuner.plan, flow_run_id=None, tags={})


def start(sweep: Sweep, *losses: float) -> SweepTrial:
    """Start the next trial, and have it report."""
    trial = sweep.next_trial(CPUS, 0)
    assert trial is not None
    training = sweep.start(trial, Display())
    for iteration, loss in enumerate(losses, start=1):
        training.report(Report(iteration, {"loss": loss}, None, time.time(), 0.1), fetch=no_fetch)
    training.run.metrics.flush()
    return trial


def no_fetch(folder: str, location: str) -> None:
    raise AssertionError("no checkpoint is saved here")


def kill(sweep: Sweep) -> None:
    """Have the sweep look as if its process had been killed."""
    abandon(sweep.run)


def abandon(run: RegisteredRun) -> None:
    """Have a run look as if its process had been killed."""
    assert run.lease is not None
    run.lease.abandon()


def status(registry, trial: SweepTrial) -> str:
    assert trial.recorded is not None
    return registry.get_run(trial.recorded.run.info.run_id).info.status
