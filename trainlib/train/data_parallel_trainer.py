"""``ray.train.data_parallel_trainer`` of the guides: the same module as :mod:`trainlib.data_parallel_trainer`."""

import sys

import trainlib.data_parallel_trainer
from trainlib.data_parallel_trainer import *  # noqa: F403  # what type checkers see
from trainlib.data_parallel_trainer import __all__ as __all__

sys.modules[__name__] = trainlib.data_parallel_trainer
