"""Samples per second of 2-worker DDP under trainlib."""

from bench.scripts.side import finish
from trainlib import ScalingConfig, session
from trainlib.torch import TorchTrainer


def train_func():
    from bench.scripts.network import train_ddp

    return train_ddp(session.report)


result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
finish(samples_per_s=result.returned[0])
