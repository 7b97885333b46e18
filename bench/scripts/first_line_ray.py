"""A training under Ray Train V1 that marks the time of its first line."""

import sys
import time

from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer

from bench.scripts.side import folder, mark, require_ray_train_v1


def train_func(config):
    now = time.time()
    if get_context().get_world_rank() == 0:
        mark(config["mark"], now)


require_ray_train_v1()
TorchTrainer(
    train_func,
    train_loop_config={"mark": sys.argv[2]},
    # By default the trainer reserves a CPU of its own, and there are only two cores.
    scaling_config=ScalingConfig(num_workers=2, trainer_resources={"CPU": 0}),
    run_config=RunConfig(storage_path=str(folder() / "storage")),
).fit()
