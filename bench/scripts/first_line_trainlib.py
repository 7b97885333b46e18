"""A training under trainlib that marks the time of its first line."""

import sys
import time

from bench.scripts.side import mark
from trainlib import ScalingConfig, get_context
from trainlib.torch import TorchTrainer


def train_func(config):
    now = time.time()
    if get_context().get_world_rank() == 0:
        mark(config["mark"], now)


TorchTrainer(train_func, train_loop_config={"mark": sys.argv[2]}, scaling_config=ScalingConfig(num_workers=2)).fit()
