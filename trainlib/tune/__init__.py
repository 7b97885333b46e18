"""Tuning sweeps: search spaces, samplers, schedulers, stoppers, and the results."""

from typing import Any

from trainlib.callbacks import Callback
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig, FailureConfig, RunConfig
from trainlib.errors import SweepFailedError as TuneError
from trainlib.result import Result
from trainlib.session import TrainContext as TuneContext
from trainlib.session import get_checkpoint, get_context, report
from trainlib.tune import _absent as absent
from trainlib.tune._config import TuneConfig
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._run import ExperimentAnalysis, run
from trainlib.tune._sample import (
    choice,
    grid_search,
    lograndint,
    loguniform,
    qlograndint,
    qloguniform,
    qrandint,
    qrandn,
    quniform,
    randint,
    randn,
    sample_from,
    uniform,
)
from trainlib.tune._tuner import Tuner
from trainlib.tune._wrappers import with_parameters, with_resources
from trainlib.tune.schedulers import (
    ASHAScheduler,
    AsyncHyperBandScheduler,
    FIFOScheduler,
    HyperBandScheduler,
    MedianStoppingRule,
    PopulationBasedTraining,
    TrialScheduler,
)
from trainlib.tune.stopper import (
    CombinedStopper,
    ExperimentPlateauStopper,
    FunctionStopper,
    MaximumIterationStopper,
    Stopper,
    TimeoutStopper,
    TrialPlateauStopper,
)

__all__ = [
    "ASHAScheduler",
    "AsyncHyperBandScheduler",
    "Callback",
    "Checkpoint",
    "CheckpointConfig",
    "CombinedStopper",
    "ExperimentAnalysis",
    "ExperimentPlateauStopper",
    "FIFOScheduler",
    "FailureConfig",
    "FunctionStopper",
    "HyperBandScheduler",
    "MaximumIterationStopper",
    "MedianStoppingRule",
    "PopulationBasedTraining",
    "Result",
    "ResultGrid",
    "RunConfig",
    "Stopper",
    "TimeoutStopper",
    "TrialPlateauStopper",
    "TrialScheduler",
    "TuneConfig",
    "TuneContext",
    "TuneError",
    "Tuner",
    "choice",
    "get_checkpoint",
    "get_context",
    "grid_search",
    "lograndint",
    "loguniform",
    "qlograndint",
    "qloguniform",
    "qrandint",
    "qrandn",
    "quniform",
    "randint",
    "randn",
    "report",
    "run",
    "sample_from",
    "uniform",
    "with_parameters",
    "with_resources",
]


def __getattr__(name: str) -> Any:
    absent.refuse(name)
    if name == "PlacementGroupFactory":  # Ray's own, which is imported only for those who use it
        from ray.tune import PlacementGroupFactory

        return PlacementGroupFactory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
