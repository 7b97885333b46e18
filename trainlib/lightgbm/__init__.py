"""LightGBM: its trainer, its backend, its checkpoints, and a callback for training functions.

``import trainlib.lightgbm`` does not import lightgbm: the coordinating process may do without it.
"""

from trainlib.lightgbm._callback import RayTrainReportCallback
from trainlib.lightgbm._checkpoint import LightGBMCheckpoint
from trainlib.lightgbm._config import LightGBMConfig, get_network_params
from trainlib.lightgbm._trainer import LightGBMTrainer

__all__ = ["LightGBMCheckpoint", "LightGBMConfig", "LightGBMTrainer", "RayTrainReportCallback", "get_network_params"]
