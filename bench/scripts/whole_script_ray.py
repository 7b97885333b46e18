"""A trivial script with 2 workers under Ray Train V1."""

from bench.scripts.whole_script import time_script

time_script("trivial_ray")
