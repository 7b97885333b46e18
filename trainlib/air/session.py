"""``ray.air.session`` of the guides: the same module as :mod:`trainlib.session`."""

import sys

import trainlib.session
from trainlib.session import *  # noqa: F403  # what type checkers see
from trainlib.session import __all__ as __all__

sys.modules[__name__] = trainlib.session
