"""trainlib: training as a pipeline of Prefect flows, Ray gangs and one MLflow registry."""

from trainlib import session
from trainlib._data.config import DataConfig
from trainlib._trainable import trainable
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.errors import TrainingFailedError
from trainlib.result import Result
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
    "session",
    "trainable",
    "world_rank",
    "world_size",
]

__version__ = "0.1.0"
