"""What runs, in which order: Prefect flows."""

from flows.pipeline import PipelineSpec, pipeline
from flows.spec import TrainSpec
from flows.train import train

__all__ = ["PipelineSpec", "TrainSpec", "pipeline", "train"]
