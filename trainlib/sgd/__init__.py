"""RaySGD v2 as its guide has it: one trainer for all frameworks, and what its training functions call."""

from trainlib.session import (
    get_dataset_shard,
    load_checkpoint,
    local_rank,
    report,
    save_checkpoint,
    world_rank,
    world_size,
)
from trainlib.sgd._trainer import Trainer

get_data_shard = get_dataset_shard

__all__ = [
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
