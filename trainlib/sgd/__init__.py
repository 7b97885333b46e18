"""RaySGD v2 as its guide has it: one trainer for all frameworks, its callbacks, and what its training functions call."""

from trainlib.session import (
    get_dataset_shard,
    load_checkpoint,
    local_rank,
    report,
    save_checkpoint,
    world_rank,
    world_size,
)
from trainlib.sgd._checkpoint_strategy import CheckpointStrategy
from trainlib.sgd._iterator import SGDIterator
from trainlib.sgd._trainer import Trainer
from trainlib.sgd.callbacks import JsonLoggerCallback, SGDCallback, TBXLoggerCallback

get_data_shard = get_dataset_shard

__all__ = [
    "CheckpointStrategy",
    "JsonLoggerCallback",
    "SGDCallback",
    "SGDIterator",
    "TBXLoggerCallback",
    "Trainer",
    "get_data_shard",
    "get_dataset_shard",
    "load_checkpoint",
    "local_rank",
    "report",
    "save_checkpoint",
    "world_rank",
    "world_size",
]
