"""What the rest of trainlib knows about LightGBM."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.lightgbm._config import LightGBMConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=LightGBMConfig,
    config_arguments=("lightgbm_config",),
    trainer="trainlib.lightgbm:LightGBMTrainer",
    checkpoint="trainlib.lightgbm:LightGBMCheckpoint",
    packages=("lightgbm", "cffi"),
    extra="lightgbm",
    form="trainlib.lightgbm._form:LightGBMForm",
    served="trainlib.lightgbm._served",
    own_function="trainlib.lightgbm._boost:boost_trees",
    own_arguments=("params", "label_column", "num_boost_round", "dmatrix_params", "early_stopping_rounds"),
)
