"""``ray.train.xgboost`` of the guides: the same module as :mod:`trainlib.xgboost`."""

import sys

import trainlib.xgboost
from trainlib.xgboost import *  # noqa: F403  # what type checkers see
from trainlib.xgboost import __all__ as __all__

sys.modules[__name__] = trainlib.xgboost
