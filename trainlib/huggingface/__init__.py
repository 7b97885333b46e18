"""Hugging Face: trainers for Transformers and Accelerate, and checkpoints of their models.

``import trainlib.huggingface`` does not import torch, Transformers or Accelerate: the coordinating process may do without them.
What a training function needs, ``prepare_trainer`` and ``RayTrainReportCallback``, is in :mod:`trainlib.huggingface.transformers`.
"""

from trainlib.huggingface._accelerate_trainer import AccelerateTrainer
from trainlib.huggingface._checkpoint import TransformersCheckpoint
from trainlib.huggingface._config import AccelerateConfig, TransformersConfig
from trainlib.huggingface._trainer import TransformersTrainer

HuggingFaceTrainer = TransformersTrainer
"""Its name in earlier versions of Ray."""

HuggingFaceCheckpoint = TransformersCheckpoint
"""Its name in earlier versions of Ray."""

__all__ = [
    "AccelerateConfig",
    "AccelerateTrainer",
    "HuggingFaceCheckpoint",
    "HuggingFaceTrainer",
    "TransformersCheckpoint",
    "TransformersConfig",
    "TransformersTrainer",
]
