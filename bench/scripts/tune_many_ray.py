"""Many trials of a trivial function under Ray Tune: seconds a trial."""

import time

from ray import tune

from bench.scripts.side import finish, folder
from bench.scripts.sweeps import MANY_RAY, trivial


def train_func(config):
    tune.report({"loss": trivial(config)})


def tune_with(trials: int) -> float:
    started = time.time()
    results = tune.Tuner(
        train_func,
        param_space={"x": tune.uniform(-1, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, metric="loss", mode="min"),
        run_config=tune.RunConfig(storage_path=str(folder() / f"storage-{trials}"), verbose=0),
    ).fit()
    if len(results) != trials or results.num_errors:
        raise RuntimeError(f"{len(results)} trials, errors: {results.errors[:3]}")
    return time.time() - started


tune_with(2)
finish(trial_s=tune_with(MANY_RAY) / MANY_RAY)
