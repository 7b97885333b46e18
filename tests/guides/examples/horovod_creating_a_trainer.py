import trainlib as train


def train_func():
    import horovod.torch as hvd

    hvd.init()
    train.report({"size": hvd.size()})
    return hvd.rank(), hvd.local_rank()


from trainlib import ScalingConfig  # noqa: E402
from trainlib.horovod import HorovodTrainer  # noqa: E402

# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = HorovodTrainer(train_func, scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2))
result = trainer.fit()
