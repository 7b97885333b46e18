"""``ray.train.backend`` of the guides: the same module as :mod:`trainlib.execution`."""

import sys

import trainlib.execution
from trainlib.execution import *  # noqa: F403  # what type checkers see
from trainlib.execution import __all__ as __all__

sys.modules[__name__] = trainlib.execution
