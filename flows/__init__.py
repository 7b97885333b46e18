"""What runs, in which order: Prefect flows."""

from trainlib._data.spec import PreprocessSpec, SplitSpec, StepSpec
from trainlib.flows.pipeline import PipelineSpec, pipeline
from trainlib.flows.preprocess import preprocess
from trainlib.flows.spec import TrainSpec
from trainlib.flows.train import train
from trainlib.flows.tune import tune
from trainlib.flows.tune_spec import TuneSpec

__all__ = [
    "PipelineSpec",
    "PreprocessSpec",
    "SplitSpec",
    "StepSpec",
    "TrainSpec",
    "TuneSpec",
    "pipeline",
    "preprocess",
    "train",
    "tune",
]
