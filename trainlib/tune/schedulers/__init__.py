"""Schedulers: they stop or copy trials, depending on what these have reported."""

from trainlib.tune.schedulers._asha import ASHAScheduler, AsyncHyperBandScheduler, HyperBandScheduler
from trainlib.tune.schedulers._median import MedianStoppingRule
from trainlib.tune.schedulers._pbt import PopulationBasedTraining
from trainlib.tune.schedulers._scheduler import FIFOScheduler, TrialScheduler, Verdict

__all__ = [
    "ASHAScheduler",
    "AsyncHyperBandScheduler",
    "FIFOScheduler",
    "HyperBandScheduler",
    "MedianStoppingRule",
    "PopulationBasedTraining",
    "TrialScheduler",
    "Verdict",
]
