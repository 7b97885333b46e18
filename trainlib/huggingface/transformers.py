"""What a training function needs that trains with a ``transformers.Trainer``. Imports torch and Transformers."""

from trainlib.huggingface._callbacks import RayTrainReportCallback
from trainlib.huggingface._loaders import prepare_trainer

__all__ = ["RayTrainReportCallback", "prepare_trainer"]
