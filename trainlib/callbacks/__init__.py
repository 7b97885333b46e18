"""Callbacks, which see each result of a training."""

from trainlib.callbacks._callback import Callback, LoggerCallback, Trial
from trainlib.callbacks._csv_logger import CSVLoggerCallback
from trainlib.callbacks._json_logger import JsonLoggerCallback
from trainlib.callbacks._mlflow import MLflowLoggerCallback
from trainlib.callbacks._tensorboard import TBXLoggerCallback
from trainlib.callbacks._wandb import WandbLoggerCallback

__all__ = [
    "CSVLoggerCallback",
    "Callback",
    "JsonLoggerCallback",
    "LoggerCallback",
    "MLflowLoggerCallback",
    "TBXLoggerCallback",
    "Trial",
    "WandbLoggerCallback",
]
