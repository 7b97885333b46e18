"""LightGBM: its trainer, its backend, and its checkpoints.

``import trainlib.lightgbm`` does not import lightgbm: the coordinating process may do without it.
"""

from trainlib.lightgbm._checkpoint import LightGBMCheckpoint
from trainlib.lightgbm._config import LightGBMConfig, get_network_params
from trainlib.lightgbm._trainer import LightGBMTrainer

__all__ = ["LightGBMCheckpoint", "LightGBMConfig", "LightGBMTrainer", "get_network_params"]
