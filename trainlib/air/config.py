"""``ray.air.config`` of the guides: the same module as :mod:`trainlib.config`."""

import sys

import trainlib.config
from trainlib.config import *  # noqa: F403  # what type checkers see
from trainlib.config import __all__ as __all__

sys.modules[__name__] = trainlib.config
