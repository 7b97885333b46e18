"""From fit() to the first line of the training function under Ray Train V1: in a fresh process, and again."""

import time

from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer

from bench.scripts.side import finish, folder, mark, marked, require_ray_train_v1


def train_func(config):
    now = time.time()
    if get_context().get_world_rank() == 0:
        mark(config["mark"], now)


def start_seconds(name: str) -> float:
    config = {"mark": folder() / name}
    trainer = TorchTrainer(
        train_func,
        train_loop_config=config,
        # By default the trainer reserves a CPU of its own, and there are only two cores.
        scaling_config=ScalingConfig(num_workers=2, trainer_resources={"CPU": 0}),
        run_config=RunConfig(storage_path=str(folder() / "storage")),
    )
    called = time.time()
    trainer.fit()
    return marked(config["mark"]) - called


require_ray_train_v1()
first = start_seconds("first")
finish(first_s=first, second_s=start_seconds("second"))
