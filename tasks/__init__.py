"""One step each, with its retries: Prefect tasks."""

from tasks.preprocess import preprocess
from tasks.register_model import register_model
from tasks.select_checkpoint import select_checkpoint
from tasks.train import train
from tasks.trial import trial

__all__ = ["preprocess", "register_model", "select_checkpoint", "train", "trial"]
