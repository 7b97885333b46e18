#: ours: the function that the text speaks of
import torch.distributed

from trainlib import train


def train_func():
    train.report({"world_size": train.get_context().get_world_size()})
    return torch.distributed.get_backend()

#: guide 001:223 002:119
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer, TorchConfig

trainer = TorchTrainer(
    train_func,
    #: instead of: torch_backend=TorchConfig(...),
    #: because: ... stands for one's own settings
    torch_backend=TorchConfig(backend="gloo", init_method="tcp", timeout_s=60),
    scaling_config=ScalingConfig(num_workers=2),
)

#: guide 003:205
result = trainer.fit()
