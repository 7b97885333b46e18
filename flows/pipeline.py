"""The whole pipeline: preprocess, train, select the best checkpoint, register the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prefect import flow
from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console

from trainlib._data.manifest import PreprocessedData
from trainlib._data.spec import PreprocessSpec
from trainlib._registry.models import ModelVersion, Selection
from trainlib.callbacks._mlflow import store_of
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._local import shows_trainings
from trainlib.flows.spec import TrainSpec
from trainlib.flows.train import train_here
from trainlib.result import Result
from trainlib.tasks.preprocess import preprocess
from trainlib.tasks.register_model import register_model
from trainlib.tasks.select_checkpoint import select_checkpoint

__all__ = ["PipelineResult", "PipelineSpec", "pipeline"]


class PipelineSpec(BaseModel):
    """What to prepare, train, select and register."""

    model_config = ConfigDict(extra="forbid")

    data: PreprocessSpec = Field(description="The data, and how to preprocess them.", json_schema_extra={"position": 0})
    train: TrainSpec = Field(
        description="What to train. The training function gets the datasets 'train' and 'validation', and the target "
        "column's name in its config.",
        json_schema_extra={"position": 1},
    )
    metric: str = Field(
        default="accuracy", description="The metric that ranks checkpoints.", json_schema_extra={"position": 2}
    )
    mode: Literal["max", "min"] = Field(
        default="max",
        description="Whether a high or a low value of the metric is better.",
        json_schema_extra={"position": 3},
    )
    model_name: str = Field(
        min_length=1, description="The name of the registered model.", json_schema_extra={"position": 4}
    )


@dataclass(frozen=True)
class PipelineResult:
    """The results of the pipeline's steps."""

    data: PreprocessedData
    training: Result
    selection: Selection
    version: ModelVersion


@flow(name="pipeline", flow_run_name="pipeline · {spec.model_name}", persist_result=False)
def pipeline(spec: PipelineSpec) -> PipelineResult:
    """Preprocess data, train on them, select the best checkpoint, and register it as a model.

    Args:
        spec: What to prepare, train, select and register.
    """
    return outliving_prefect(lambda: _pipeline(spec))


def _pipeline(spec: PipelineSpec) -> PipelineResult:
    _step(1, f"preprocessing {spec.data.source}")
    data = preprocess(spec.data, say=_say if shows_trainings.get() else None)
    _step(2, f"training on {data.train_rows} rows, validating on {data.validation_rows}")
    inspected = spec.train.on(data).inspected()
    with store_of(inspected.trainer.run_config).in_use():  # the model is registered where the training is recorded
        training = train_here(inspected)
        assert training.run_id is not None
        best = "highest" if spec.mode == "max" else "lowest"
        _step(3, f"selecting the checkpoint with the {best} {spec.metric}")
        selection = select_checkpoint([training.run_id], spec.metric, spec.mode)
        _step(4, f"registering it as {spec.model_name}")
        version = register_model(selection, spec.model_name)
    return PipelineResult(data, training, selection, version)


def _step(number: int, text: str) -> None:
    _say(f"{number}/4 {text}")


def _say(text: str) -> None:
    Console(stderr=True, highlight=False).print(text, soft_wrap=True, markup=False)
