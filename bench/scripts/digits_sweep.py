"""The sweep on digits that compares schedulers."""

from __future__ import annotations

from bench.scripts.sweeps import DIGITS_SPACE, DIGITS_TRIALS, train_digits
from trainlib import RunConfig, ScalingConfig, session, tune
from trainlib.torch import TorchTrainer
from trainlib.tune import TrialScheduler


def train_func(config):
    train_digits(config, session.report)


def sweep(scheduler: TrialScheduler) -> tuple[int, float]:
    """The total number of epochs, and the best final accuracy. Every scheduler gets the same trials."""
    results = tune.Tuner(
        TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=1)),
        param_space={
            "train_loop_config": {
                "lr": tune.loguniform(*DIGITS_SPACE["lr"]),
                "hidden": tune.lograndint(*DIGITS_SPACE["hidden"]),
            }
        },
        tune_config=tune.TuneConfig(
            num_samples=DIGITS_TRIALS, metric="accuracy", mode="max", scheduler=scheduler, seed=7
        ),
        run_config=RunConfig(verbose=0),
    ).fit()
    if len(results) != DIGITS_TRIALS or results.num_errors:
        raise RuntimeError(f"{len(results)} trials, errors: {results.errors[:3]}")
    epochs = sum(result.metrics["training_iteration"] for result in results)
    return epochs, results.get_best_result().metrics["accuracy"]
