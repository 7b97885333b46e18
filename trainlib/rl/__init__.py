"""Reinforcement learning with RLlib: its trainer and its checkpoints.

``import trainlib.rl`` does not import RLlib: that is done when an ``RLTrainer`` is made.
"""

from trainlib.rl._checkpoint import RLCheckpoint
from trainlib.rl._config import RLConfig
from trainlib.rl._trainer import RLTrainer

__all__ = ["RLCheckpoint", "RLConfig", "RLTrainer"]
