"""TensorFlow: its trainer, its backend, and helpers for a training function.

``import trainlib.tensorflow`` does not import TensorFlow: the coordinating process may do without it.
"""

from trainlib.tensorflow.checkpoint import TensorflowCheckpoint
from trainlib.tensorflow.config import TensorflowConfig
from trainlib.tensorflow.keras import ReportCheckpointCallback
from trainlib.tensorflow.prepare import prepare_dataset_shard
from trainlib.tensorflow.trainer import TensorflowTrainer

__all__ = [
    "ReportCheckpointCallback",
    "TensorflowCheckpoint",
    "TensorflowConfig",
    "TensorflowTrainer",
    "prepare_dataset_shard",
]
