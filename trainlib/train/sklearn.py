"""``ray.train.sklearn`` of the guides: the same module as :mod:`trainlib.sklearn`."""

import sys

import trainlib.sklearn
from trainlib.sklearn import *  # noqa: F403  # what type checkers see
from trainlib.sklearn import __all__ as __all__

sys.modules[__name__] = trainlib.sklearn
