"""The import lines of a script that uses trainlib."""

from bench.scripts.importing import time_imports

time_imports("trainlib", "trainlib.torch")
