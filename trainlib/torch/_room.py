"""What the rest of trainlib knows about PyTorch."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.torch._config import TorchConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=TorchConfig,
    config_arguments=("torch_config", "torch_backend"),
    trainer="trainlib.torch:TorchTrainer",
    checkpoint="trainlib.torch:TorchCheckpoint",
    served="trainlib.torch._served",
    packages=("torch",),
    extra="torch",
    averages_gradients=True,
)
