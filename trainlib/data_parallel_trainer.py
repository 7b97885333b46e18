"""``ray.train.data_parallel_trainer`` of the guides. The class is the same as ``trainlib.DataParallelTrainer``."""

from trainlib.trainer import DataParallelTrainer

__all__ = ["DataParallelTrainer"]
