"""``ray.train.rl`` of the guides: the same module as :mod:`trainlib.rl`."""

import sys

import trainlib.rl
from trainlib.rl import *  # noqa: F403  # what type checkers see
from trainlib.rl import __all__ as __all__

sys.modules[__name__] = trainlib.rl
