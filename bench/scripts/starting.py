"""A training that writes down when its function is reached."""

import time

from bench.scripts.side import folder, mark, marked
from trainlib import ScalingConfig, get_context
from trainlib.torch import TorchTrainer


def train_func(config):
    now = time.time()
    if get_context().get_world_rank() == 0:
        mark(config["mark"], now)


def start_seconds(name: str) -> float:
    """From the call of fit() to the first line of the training function on rank 0."""
    config = {"mark": folder() / name}
    trainer = TorchTrainer(train_func, train_loop_config=config, scaling_config=ScalingConfig(num_workers=2))
    called = time.time()
    trainer.fit()
    return marked(config["mark"]) - called
