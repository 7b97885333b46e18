import torch.distributed

import trainlib as train


def train_func():
    train.report({"world_size": train.get_context().get_world_size()})
    return torch.distributed.get_backend()


from trainlib import ScalingConfig  # noqa: E402
from trainlib.torch import TorchTrainer, TorchConfig  # noqa: E402

trainer = TorchTrainer(
    train_func,
    torch_backend=TorchConfig(backend="gloo", init_method="tcp", timeout_s=60),
    scaling_config=ScalingConfig(num_workers=2),
)
result = trainer.fit()
