"""What the rest of trainlib knows about RLlib."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.rl._config import RLConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=RLConfig,
    config_arguments=("rl_config",),
    trainer="trainlib.rl:RLTrainer",
    checkpoint="trainlib.rl:RLCheckpoint",
    packages=("ray", "torch", "gymnasium", "tree", "lz4", "ormsgpack", "scipy"),
    extra="rl",
    form="trainlib.rl._form:RLForm",
    served="trainlib.rl._served",
    own_function="trainlib.rl._train:train_algorithm",
    own_arguments=("algorithm", "config"),
    takes_function=False,
    gang="trainlib.rl._gang:gang_of",
)
