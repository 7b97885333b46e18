"""Many trials of a trivial function under Ray Tune with reused processes: seconds per trial."""

from bench.scripts.side import finish
from bench.scripts.sweeps import MANY
from bench.scripts.tune_many_with_ray import tune_with

tune_with(20, reuse_actors=True)
finish(trial_s=tune_with(MANY, reuse_actors=True) / MANY)
