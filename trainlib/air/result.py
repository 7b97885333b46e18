"""``ray.air.result`` of the guides: the same module as :mod:`trainlib.result`."""

import sys

import trainlib.result
from trainlib.result import *  # noqa: F403  # what type checkers see
from trainlib.result import __all__ as __all__

sys.modules[__name__] = trainlib.result
