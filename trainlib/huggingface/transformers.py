"""What a training function needs that trains with a ``transformers.Trainer``. Imports torch and Transformers.

Ray's guides also import its trainer and its checkpoints from here.
"""

from trainlib.huggingface._callbacks import RayTrainReportCallback
from trainlib.huggingface._checkpoint import TransformersCheckpoint
from trainlib.huggingface._loaders import prepare_trainer
from trainlib.huggingface._trainer import TransformersTrainer

__all__ = ["RayTrainReportCallback", "TransformersCheckpoint", "TransformersTrainer", "prepare_trainer"]
