"""``ray.train.tensorflow`` of the guides: the same module as :mod:`trainlib.tensorflow`."""

import sys

import trainlib.tensorflow
from trainlib.tensorflow import *  # noqa: F403  # what type checkers see
from trainlib.tensorflow import __all__ as __all__

sys.modules[__name__] = trainlib.tensorflow
