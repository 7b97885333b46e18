"""Many trials of a trivial function under Ray Tune: seconds per trial. By default, it starts a process for each."""

from bench.scripts.side import finish
from bench.scripts.sweeps import MANY_RAY
from bench.scripts.tune_many_with_ray import tune_with

tune_with(2)
finish(trial_s=tune_with(MANY_RAY) / MANY_RAY)
