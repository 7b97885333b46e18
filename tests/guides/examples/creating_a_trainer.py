import torch.distributed

import trainlib as train


def train_func():
    train.report({"world_size": torch.distributed.get_world_size()})
    return torch.distributed.get_rank()


from trainlib import ScalingConfig  # noqa: E402
from trainlib.torch import TorchTrainer  # noqa: E402

# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2))
result = trainer.fit()
