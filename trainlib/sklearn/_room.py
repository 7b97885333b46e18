"""What the rest of trainlib knows about scikit-learn."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.sklearn._config import SklearnConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=SklearnConfig,
    config_arguments=("sklearn_config",),
    trainer="trainlib.sklearn:SklearnTrainer",
    checkpoint="trainlib.sklearn:SklearnCheckpoint",
    packages=("sklearn",),
    extra="sklearn",
    form="trainlib.sklearn._form:SklearnForm",
    served="trainlib.sklearn._served",
    own_function="trainlib.sklearn._fit:fit_estimator",
    own_arguments=(
        "estimator",
        "label_column",
        "params",
        "scoring",
        "cv",
        "return_train_score_cv",
        "parallelize_cv",
        "set_estimator_cpus",
        "fit_params",
    ),
    takes_function=False,
)
