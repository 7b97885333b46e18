"""Which trials go on: schedulers that stop, or copy, trials by what they have reported."""

from trainlib.tune.schedulers.asha import ASHAScheduler, AsyncHyperBandScheduler, HyperBandScheduler
from trainlib.tune.schedulers.median import MedianStoppingRule
from trainlib.tune.schedulers.pbt import PopulationBasedTraining
from trainlib.tune.schedulers.scheduler import FIFOScheduler, TrialScheduler, Verdict

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
