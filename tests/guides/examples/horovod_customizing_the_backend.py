#: ours: the function that the text speaks of
from trainlib import train


def train_func():
    import os
    import horovod.torch as hvd

    hvd.init()
    train.report({"size": hvd.size()})
    return os.environ["HOROVOD_GLOO_TIMEOUT_SECONDS"]

#: guide 001:250
from trainlib import ScalingConfig
from trainlib.horovod import HorovodTrainer, HorovodConfig

trainer = HorovodTrainer(
    train_func,
    #: instead of: tensorflow_backend=HorovodConfig(...),
    #: because: ... stands for one's own settings
    tensorflow_backend=HorovodConfig(init="torch", timeout_s=60),
    scaling_config=ScalingConfig(num_workers=2),
)

#: ours: to show that it runs
trainer.fit()
