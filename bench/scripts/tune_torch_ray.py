"""12 short trials of a 2-worker torch trainer under Ray Tune, from a fresh process."""

import time

from ray import tune
from ray.train import RunConfig, ScalingConfig, report
from ray.train.torch import TorchTrainer

from bench.scripts.side import finish, folder, require_ray_train_v1
from bench.scripts.sweeps import TRIALS, train_short


def train_func(config):
    train_short(config, report)


require_ray_train_v1()
# By default the trainer reserves a CPU of its own, and there are only two cores.
trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2, trainer_resources={"CPU": 0}))
tuner = tune.Tuner(
    trainer,
    param_space={"train_loop_config": {"lr": tune.loguniform(1e-3, 1e-1)}},
    tune_config=tune.TuneConfig(num_samples=TRIALS, metric="loss", mode="min"),
    run_config=RunConfig(storage_path=str(folder() / "storage"), verbose=0),
)
started = time.time()
results = tuner.fit()
seconds = time.time() - started
if len(results) != TRIALS or results.num_errors:
    raise RuntimeError(f"{len(results)} trials, errors: {results.errors}")
finish(sweep_s=seconds)
