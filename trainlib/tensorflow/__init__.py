"""TensorFlow: its trainer, its backend, and helpers for a training function.

``import trainlib.tensorflow`` does not import TensorFlow: the coordinating process may do without it.
"""

from trainlib.tensorflow._checkpoint import TensorflowCheckpoint
from trainlib.tensorflow._config import TensorflowConfig
from trainlib.tensorflow._dataset import prepare_dataset_shard
from trainlib.tensorflow._keras import ReportCheckpointCallback
from trainlib.tensorflow._trainer import TensorflowTrainer

__all__ = [
    "ReportCheckpointCallback",
    "TensorflowCheckpoint",
    "TensorflowConfig",
    "TensorflowTrainer",
    "prepare_dataset_shard",
]
