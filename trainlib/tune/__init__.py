"""Tuning sweeps: search spaces, samplers, schedulers, stoppers, and the results."""

from trainlib.session import get_checkpoint, report
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
    "CombinedStopper",
    "ExperimentAnalysis",
    "ExperimentPlateauStopper",
    "FIFOScheduler",
    "FunctionStopper",
    "HyperBandScheduler",
    "MaximumIterationStopper",
    "MedianStoppingRule",
    "PopulationBasedTraining",
    "ResultGrid",
    "Stopper",
    "TimeoutStopper",
    "TrialPlateauStopper",
    "TrialScheduler",
    "TuneConfig",
    "Tuner",
    "choice",
    "get_checkpoint",
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
]
