"""What the rest of trainlib knows about XGBoost."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.xgboost._config import XGBoostConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=XGBoostConfig,
    config_arguments=("xgboost_config",),
    trainer="trainlib.xgboost:XGBoostTrainer",
    checkpoint="trainlib.xgboost:XGBoostCheckpoint",
    packages=("xgboost",),
    extra="xgboost",
    form="trainlib.xgboost._form:XGBoostForm",
    served="trainlib.xgboost._served",
    own_function="trainlib.xgboost._boost:boost_trees",
    own_arguments=("params", "label_column", "num_boost_round", "dmatrix_params", "early_stopping_rounds"),
)
