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
    # RLlib is a part of Ray, which is there anyway. What its extra brings besides is not.
    packages=("gymnasium", "ray", "torch", "tree", "lz4", "ormsgpack", "scipy"),
    version_package="ray",
    extra="rl",
    form="trainlib.rl._form:RLForm",
    served="trainlib.rl._served",
    served_packages=("torch", "ray[rllib]"),
    own_function="trainlib.rl._train:train_algorithm",
    own_arguments=("algorithm", "config"),
    takes_function=False,
    ends_by_itself=False,
    rare_metrics=("env_runners/", "evaluation/"),  # only once an episode has ended
    validation=None,
    gang="trainlib.rl._gang:gang_of",
)
