"""Samples per second of Lightning's Trainer on 2 workers under trainlib."""

from bench.scripts.side import finish
from trainlib import ScalingConfig
from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback
from trainlib.torch import TorchTrainer


def train_func():
    from bench.scripts.network import train_lightning

    return train_lightning(
        world_size=2,
        strategy=RayDDPStrategy(),
        plugins=[RayLightningEnvironment()],
        callbacks=[RayTrainReportCallback()],
        enable_checkpointing=False,
    )


result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
finish(samples_per_s=result.returned[0])
