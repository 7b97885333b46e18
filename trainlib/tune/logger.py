"""``ray.tune.logger`` of the guides. The names are the same as in ``trainlib.callbacks``."""

from trainlib.callbacks import JsonLoggerCallback, LoggerCallback, TBXLoggerCallback

__all__ = ["JsonLoggerCallback", "LoggerCallback", "TBXLoggerCallback"]
