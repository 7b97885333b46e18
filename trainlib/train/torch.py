"""``ray.train.torch`` of the guides: the same module as :mod:`trainlib.torch`."""

import sys

import trainlib.torch
from trainlib.torch import *  # noqa: F403  # what type checkers see
from trainlib.torch import __all__ as __all__

sys.modules[__name__] = trainlib.torch
