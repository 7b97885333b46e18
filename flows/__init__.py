"""What runs, in which order: Prefect flows."""

from flows.spec import TrainSpec
from flows.train import train

__all__ = ["TrainSpec", "train"]
