"""``ray.train`` of the guides: ``from trainlib import train``, then ``train.report`` and ``train.torch.prepare_model``.

A framework's folder is imported at its first use: ``train.torch`` is :mod:`trainlib.torch`.
"""

from trainlib import (
    BaseTrainer,
    Checkpoint,
    CheckpointConfig,
    DataConfig,
    DataParallelTrainer,
    FailureConfig,
    Result,
    RunConfig,
    ScalingConfig,
    TrainContext,
    Trainer,
    TrainingFailedError,
    get_checkpoint,
    get_context,
    get_dataset_shard,
    load_checkpoint,
    local_rank,
    report,
    save_checkpoint,
    world_rank,
    world_size,
)
from trainlib._execution.backend import Backend, BackendConfig
from trainlib._lazy_package import import_when_asked
from trainlib._rooms import folders

__all__ = [
    "Backend",
    "BackendConfig",
    "BaseTrainer",
    "Checkpoint",
    "CheckpointConfig",
    "DataConfig",
    "DataParallelTrainer",
    "FailureConfig",
    "Result",
    "RunConfig",
    "ScalingConfig",
    "TrainContext",
    "Trainer",
    "TrainingFailedError",
    "get_checkpoint",
    "get_context",
    "get_dataset_shard",
    "load_checkpoint",
    "local_rank",
    "report",
    "save_checkpoint",
    "world_rank",
    "world_size",
]

import_when_asked(
    __name__,
    {},
    modules={
        "backend": "trainlib.execution",
        **{
            name: f"trainlib.{name}"
            for name in ("base_trainer", "callbacks", "data_parallel_trainer", "lightning", *folders())
        },
    },
)
