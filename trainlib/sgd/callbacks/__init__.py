"""RaySGD's callbacks, which see what all ranks report."""

from trainlib.sgd.callbacks._callback import SGDCallback
from trainlib.sgd.callbacks._json_logger import JsonLoggerCallback
from trainlib.sgd.callbacks._tensorboard import TBXLoggerCallback

__all__ = ["JsonLoggerCallback", "SGDCallback", "TBXLoggerCallback"]
