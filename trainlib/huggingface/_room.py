"""What the rest of trainlib knows about Hugging Face's Transformers."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.huggingface._config import TransformersConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=TransformersConfig,
    config_arguments=("torch_config",),
    trainer="trainlib.huggingface:TransformersTrainer",
    checkpoint="trainlib.huggingface:TransformersCheckpoint",
    packages=("transformers", "accelerate", "torch"),
    extra="huggingface",
    form="trainlib.huggingface._form:TransformersForm",
    served="trainlib.huggingface._served",
    own_function="trainlib.huggingface._loop:train_transformers",
    own_arguments=("trainer_init_per_worker", "trainer_init_config"),
    takes_function=False,
    rare_metrics=("eval_", "train_"),
    validation="evaluation",
)
