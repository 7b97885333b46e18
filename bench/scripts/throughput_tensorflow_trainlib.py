"""Samples per second of 2-worker MultiWorkerMirroredStrategy under trainlib."""

from bench.scripts.side import finish
from trainlib import ScalingConfig, session
from trainlib.tensorflow import TensorflowTrainer


def train_func():
    from bench.scripts.network import train_keras

    return train_keras(session.report)


result = TensorflowTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
finish(samples_per_s=result.returned[0])
