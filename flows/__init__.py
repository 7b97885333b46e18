"""What runs, in which order: Prefect flows."""

from flows.pipeline import PipelineSpec, pipeline
from flows.preprocess import preprocess
from flows.spec import TrainSpec
from flows.train import train
from flows.tune import tune
from flows.tune_spec import TuneSpec
from trainlib.data.spec import PreprocessSpec

__all__ = ["PipelineSpec", "PreprocessSpec", "TrainSpec", "TuneSpec", "pipeline", "preprocess", "train", "tune"]
