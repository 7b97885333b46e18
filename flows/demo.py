"""The demonstration, as a run of the pipeline."""

from __future__ import annotations

from trainlib._data.spec import PreprocessSpec, StepSpec
from trainlib.config import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.demo import digits_file
from trainlib.flows.pipeline_spec import HeldOutSplit, PipelineSpec
from trainlib.flows.spec import TrainSpec

__all__ = ["digits"]


def digits(num_workers: int = 2, num_epochs: int = 12) -> PipelineSpec:
    """A small torch network on a file of handwritten digits, which is written first if it is not there yet."""
    return PipelineSpec(
        data=PreprocessSpec(
            source=str(digits_file()),
            target="target",
            split=HeldOutSplit(),
            steps=[StepSpec(name="StandardScaler")],
        ),
        train=TrainSpec(
            trainer={
                "kind": "torch",
                "train_loop": "trainlib.demo:train_digits",
                "train_loop_config": {"num_epochs": num_epochs, "lr": 0.005, "batch_size": 32, "hidden": 64},
            },
            scaling_config=ScalingConfig(num_workers=num_workers),
            run_config=RunConfig(
                experiment_name="digits",
                checkpoint_config=CheckpointConfig(num_to_keep=2),
                failure_config=FailureConfig(max_failures=2),
            ),
        ),
        evaluate="trainlib.demo:evaluate_digits",
        model_name="digits",
    )
