"""``ray.train.huggingface.accelerate`` of the guides: the trainer for Accelerate. Does not import Accelerate."""

from trainlib.huggingface._accelerate_trainer import AccelerateTrainer

__all__ = ["AccelerateTrainer"]
