"""``ray.train.horovod`` of the guides: the same module as :mod:`trainlib.horovod`."""

import sys

import trainlib.horovod
from trainlib.horovod import *  # noqa: F403  # what type checkers see
from trainlib.horovod import __all__ as __all__

sys.modules[__name__] = trainlib.horovod
