"""A trivial script with 2 workers under trainlib."""

from bench.scripts.whole_script import time_script

time_script("trivial_trainlib")
