"""``ray.train.huggingface`` of the guides: the same module as :mod:`trainlib.huggingface`."""

import sys

import trainlib.huggingface
from trainlib.huggingface import *  # noqa: F403  # what type checkers see
from trainlib.huggingface import __all__ as __all__

sys.modules[__name__] = trainlib.huggingface
