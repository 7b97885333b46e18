"""``ray.train.base_trainer`` of the guides. The names are the same as in ``trainlib``."""

from trainlib.errors import TrainingFailedError
from trainlib.trainer import BaseTrainer

__all__ = ["BaseTrainer", "TrainingFailedError"]
