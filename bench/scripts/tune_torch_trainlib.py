"""12 short trials of a 2-worker torch trainer under trainlib, from a fresh process."""

import time

from bench.scripts.side import finish
from bench.scripts.sweeps import TRIALS, train_short
from trainlib import RunConfig, ScalingConfig, session, tune
from trainlib.torch import TorchTrainer


def train_func(config):
    train_short(config, session.report)


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(verbose=0))
tuner = tune.Tuner(
    trainer,
    param_space={"train_loop_config": {"lr": tune.loguniform(1e-3, 1e-1)}},
    tune_config=tune.TuneConfig(num_samples=TRIALS, metric="loss", mode="min"),
)
started = time.time()
results = tuner.fit()
seconds = time.time() - started
if len(results) != TRIALS or results.num_errors:
    raise RuntimeError(f"{len(results)} trials, errors: {results.errors}")
finish(sweep_s=seconds)
