"""XGBoost: its trainer, its backend, and its checkpoints.

``import trainlib.xgboost`` does not import xgboost: the coordinating process may do without it.
"""

from trainlib.xgboost._checkpoint import XGBoostCheckpoint
from trainlib.xgboost._config import XGBoostConfig
from trainlib.xgboost._trainer import XGBoostTrainer

__all__ = ["XGBoostCheckpoint", "XGBoostConfig", "XGBoostTrainer"]
