"""Callbacks: what sees each result of a training."""

from trainlib.callbacks.callback import Callback, LoggerCallback, Trial
from trainlib.callbacks.json_logger import JsonLoggerCallback
from trainlib.callbacks.mlflow import MLflowLoggerCallback
from trainlib.callbacks.tensorboard import TBXLoggerCallback

__all__ = [
    "Callback",
    "JsonLoggerCallback",
    "LoggerCallback",
    "MLflowLoggerCallback",
    "TBXLoggerCallback",
    "Trial",
]
