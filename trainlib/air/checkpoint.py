"""``ray.air.checkpoint`` of the guides: the same module as :mod:`trainlib.checkpoint`."""

import sys

import trainlib.checkpoint
from trainlib.checkpoint import *  # noqa: F403  # what type checkers see
from trainlib.checkpoint import __all__ as __all__

sys.modules[__name__] = trainlib.checkpoint
