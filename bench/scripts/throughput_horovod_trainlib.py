"""Samples per second of 2-worker Horovod under trainlib."""

from bench.scripts.side import finish
from trainlib import ScalingConfig, session
from trainlib.horovod import HorovodTrainer


def train_func():
    from bench.scripts.network import train_horovod

    return train_horovod(session.report)


result = HorovodTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
finish(samples_per_s=result.returned[0])
