"""From fit() to the first line of the training function under trainlib: in a fresh process, and again."""

from bench.scripts.side import finish
from bench.scripts.starting import start_seconds

first = start_seconds("first")
finish(first_s=first, second_s=start_seconds("second"))
