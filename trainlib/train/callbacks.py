"""``ray.train.callbacks`` of the guides: the same module as :mod:`trainlib.callbacks`."""

import sys

import trainlib.callbacks
from trainlib.callbacks import *  # noqa: F403  # what type checkers see
from trainlib.callbacks import __all__ as __all__

sys.modules[__name__] = trainlib.callbacks
