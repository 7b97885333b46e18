"""trainlib: training as a pipeline of Prefect flows, Ray gangs and one MLflow registry.

Code that was written for Ray's guides keeps its body: after ``import trainlib as ray``, ``ray.train.torch.prepare_model`` and
``ray.air.session`` are trainlib's, and ``ray.init`` and ``ray.data`` are Ray's own. All of these are imported at their first use.
"""

from trainlib import session
from trainlib._data.config import DataConfig
from trainlib._lazy_package import import_when_asked
from trainlib._ray_data_log import without_progress
from trainlib._rooms import folders
from trainlib._trainable import trainable
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig, DivergenceConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.errors import TrainingFailedError
from trainlib.result import Result, Stopped, StopReason
from trainlib.session import (
    TrainContext,
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
from trainlib.sgd._trainer import Trainer
from trainlib.trainer import BaseTrainer, DataParallelTrainer

__all__ = [
    "BaseTrainer",
    "Checkpoint",
    "CheckpointConfig",
    "DataConfig",
    "DataParallelTrainer",
    "DivergenceConfig",
    "FailureConfig",
    "Result",
    "RunConfig",
    "ScalingConfig",
    "StopReason",
    "Stopped",
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
    "session",
    "trainable",
    "world_rank",
    "world_size",
]

__version__ = "0.1.0"

# What Ray does itself, for scripts that say `import trainlib as ray`.
_RAYS = (
    "available_resources",
    "cluster_resources",
    "get",
    "init",
    "is_initialized",
    "kill",
    "nodes",
    "put",
    "remote",
    "shutdown",
    "wait",
)

import_when_asked(
    __name__,
    dict.fromkeys(_RAYS, "ray"),
    modules={
        "data": "ray.data",
        **{name: f"{__name__}.{name}" for name in ("air", "callbacks", "sgd", "train", "tune", *folders())},
    },
)
without_progress()
