"""The same import lines for Ray Train V1."""

from bench.scripts.importing import time_imports

time_imports("ray.train", "ray.train.torch")
