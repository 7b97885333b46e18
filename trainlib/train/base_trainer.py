"""``ray.train.base_trainer`` of the guides: the same module as :mod:`trainlib.base_trainer`."""

import sys

import trainlib.base_trainer
from trainlib.base_trainer import *  # noqa: F403  # what type checkers see
from trainlib.base_trainer import __all__ as __all__

sys.modules[__name__] = trainlib.base_trainer
