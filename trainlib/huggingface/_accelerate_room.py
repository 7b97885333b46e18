"""What the rest of trainlib knows about Hugging Face's Accelerate."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.huggingface._config import AccelerateConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=AccelerateConfig,
    config_arguments=("accelerate_config", "torch_config"),
    trainer="trainlib.huggingface:AccelerateTrainer",
    packages=("accelerate", "torch"),
    extra="huggingface",
)
