"""XGBoost: its trainer, its backend, its checkpoints, and a callback for training functions.

``import trainlib.xgboost`` does not import xgboost: the coordinating process may do without it. The callback does, when it is asked for.
"""

from typing import TYPE_CHECKING

from trainlib._lazy_package import import_when_asked
from trainlib.xgboost._checkpoint import XGBoostCheckpoint
from trainlib.xgboost._config import XGBoostConfig
from trainlib.xgboost._trainer import XGBoostTrainer

if TYPE_CHECKING:
    from trainlib.xgboost._callback import RayTrainReportCallback

__all__ = ["RayTrainReportCallback", "XGBoostCheckpoint", "XGBoostConfig", "XGBoostTrainer"]

import_when_asked(__name__, {"RayTrainReportCallback": "trainlib.xgboost._callback"})
