"""``ray.tune.tuner`` of the guides. The names are the same as in ``trainlib.tune``."""

from trainlib.tune._config import TuneConfig
from trainlib.tune._tuner import Tuner

__all__ = ["TuneConfig", "Tuner"]
