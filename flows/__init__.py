"""What runs, in which order: Prefect flows.

Each is imported at its first use: a training needs none of the others.
"""

from typing import TYPE_CHECKING

from trainlib._lazy_package import import_when_asked

if TYPE_CHECKING:
    from trainlib._data.spec import PreprocessSpec, SplitSpec, StepSpec
    from trainlib.flows.fork import fork
    from trainlib.flows.pipeline import pipeline
    from trainlib.flows.pipeline_spec import Approval, HeldOutSplit, PipelineSpec
    from trainlib.flows.predict import predict
    from trainlib.flows.preprocess import preprocess
    from trainlib.flows.resume import resume
    from trainlib.flows.retention import retention
    from trainlib.flows.rollback import rollback
    from trainlib.flows.spec import TrainSpec
    from trainlib.flows.sweep import sweep
    from trainlib.flows.train import train
    from trainlib.flows.tune_spec import TuneSpec

__all__ = [
    "Approval",
    "HeldOutSplit",
    "PipelineSpec",
    "PreprocessSpec",
    "SplitSpec",
    "StepSpec",
    "TrainSpec",
    "TuneSpec",
    "fork",
    "pipeline",
    "predict",
    "preprocess",
    "resume",
    "retention",
    "rollback",
    "sweep",
    "train",
]

_FLOWS = ("fork", "pipeline", "predict", "preprocess", "resume", "retention", "rollback", "sweep", "train")

import_when_asked(
    __name__,
    {
        "Approval": "trainlib.flows.pipeline_spec",
        "HeldOutSplit": "trainlib.flows.pipeline_spec",
        "PipelineSpec": "trainlib.flows.pipeline_spec",
        "PreprocessSpec": "trainlib._data.spec",
        "SplitSpec": "trainlib._data.spec",
        "StepSpec": "trainlib._data.spec",
        "TrainSpec": "trainlib.flows.spec",
        "TuneSpec": "trainlib.flows.tune_spec",
        **{name: f"{__name__}.{name}" for name in _FLOWS},
    },
)
