import trainlib as train


def train_func():
    import os
    import horovod.torch as hvd

    hvd.init()
    train.report({"size": hvd.size()})
    return os.environ["HOROVOD_GLOO_TIMEOUT_SECONDS"]


from trainlib import ScalingConfig  # noqa: E402
from trainlib.horovod import HorovodTrainer, HorovodConfig  # noqa: E402

trainer = HorovodTrainer(
    train_func,
    tensorflow_backend=HorovodConfig(init="torch", timeout_s=60),
    scaling_config=ScalingConfig(num_workers=2),
)
result = trainer.fit()
