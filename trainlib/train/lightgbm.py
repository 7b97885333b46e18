"""``ray.train.lightgbm`` of the guides: the same module as :mod:`trainlib.lightgbm`."""

import sys

import trainlib.lightgbm
from trainlib.lightgbm import *  # noqa: F403  # what type checkers see
from trainlib.lightgbm import __all__ as __all__

sys.modules[__name__] = trainlib.lightgbm
