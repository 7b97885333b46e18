"""One step each, with its retries: Prefect tasks."""

from trainlib.tasks.preprocess import preprocess
from trainlib.tasks.register_model import register_model
from trainlib.tasks.select_checkpoint import select_checkpoint
from trainlib.tasks.train import train
from trainlib.tasks.trial import trial

__all__ = ["preprocess", "register_model", "select_checkpoint", "train", "trial"]
