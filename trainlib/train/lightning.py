"""``ray.train.lightning`` of Ray's guides: the same module as :mod:`trainlib.lightning`."""

import sys

import trainlib.lightning
from trainlib.lightning import *  # noqa: F403  # what type checkers see
from trainlib.lightning import __all__ as __all__

sys.modules[__name__] = trainlib.lightning
