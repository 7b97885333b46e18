"""A sweep of a trivial function under Ray Tune."""

import time

from ray import tune

from bench.scripts.side import folder
from bench.scripts.sweeps import trivial


def train_func(config):
    tune.report({"loss": trivial(config)})


def tune_with(trials: int, reuse_actors: bool = False) -> float:
    """How many seconds the trials take."""
    started = time.time()
    results = tune.Tuner(
        train_func,
        param_space={"x": tune.uniform(-1, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, metric="loss", mode="min", reuse_actors=reuse_actors),
        run_config=tune.RunConfig(storage_path=str(folder() / f"storage-{trials}"), verbose=0),
    ).fit()
    if len(results) != trials or results.num_errors:
        raise RuntimeError(f"{len(results)} trials, errors: {results.errors[:3]}")
    return time.time() - started
