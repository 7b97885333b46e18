"""``ray.air`` of the guides: ``from trainlib import air``, then ``air.session.report`` and ``air.ScalingConfig``."""

from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataConfig,
    FailureConfig,
    Result,
    RunConfig,
    ScalingConfig,
    checkpoint,
    config,
    result,
    session,
)

__all__ = [
    "Checkpoint",
    "CheckpointConfig",
    "DataConfig",
    "FailureConfig",
    "Result",
    "RunConfig",
    "ScalingConfig",
    "checkpoint",
    "config",
    "result",
    "session",
]
