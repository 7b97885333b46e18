"""Checking that Lightning's Trainer trains on the workers that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.errors import InvalidArgumentError
from trainlib.lightning._environment import RayLightningEnvironment
from trainlib.lightning._strategy import RayDDPStrategy
from trainlib.torch._devices import get_device

if TYPE_CHECKING:
    import lightning.pytorch as pl

__all__ = ["prepare_trainer"]


def prepare_trainer(trainer: pl.Trainer) -> pl.Trainer:
    """Check that Lightning's ``Trainer`` is set up for the workers of this training, and give it back.

    Example:
        >>> from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback
        >>> def train_func():
        ...     import lightning.pytorch as pl
        ...     trainer = prepare_trainer(
        ...         pl.Trainer(
        ...             max_epochs=10,
        ...             strategy=RayDDPStrategy(),
        ...             plugins=[RayLightningEnvironment()],
        ...             callbacks=[RayTrainReportCallback()],
        ...             enable_checkpointing=False,
        ...         )
        ...     )
        ...     trainer.fit(model, train_loader)

    Raises:
        InvalidArgumentError: it would train in another way, or on other devices or processes. The message says what to change.
        RuntimeError: there is no process group: the function was not started by a TorchTrainer.
    """
    running = session.current("prepare_trainer")
    strategy = getattr(trainer, "strategy", None)
    if strategy is None:
        raise InvalidArgumentError(f"prepare_trainer() takes Lightning's Trainer, but got a {type(trainer).__name__}")
    if not isinstance(strategy, RayDDPStrategy):
        raise InvalidArgumentError(
            f"the Trainer's strategy is {type(strategy).__name__}, which does not train on the workers of a TorchTrainer. "
            "Use Trainer(strategy=trainlib.lightning.RayDDPStrategy()). FSDP and DeepSpeed are not supported"
        )
    environment: Any = getattr(strategy, "cluster_environment", None)
    if not isinstance(environment, RayLightningEnvironment):
        raise InvalidArgumentError(
            f"the Trainer takes its ranks from {type(environment).__name__}, which does not know them. Use "
            "Trainer(plugins=[trainlib.lightning.RayLightningEnvironment()])"
        )
    _require_own_devices(trainer, running.context.world_size)
    _require_process_group()
    return trainer


def _require_own_devices(trainer: Any, world_size: int) -> None:
    if trainer.num_nodes != 1:
        raise InvalidArgumentError(
            f"Trainer(num_nodes={trainer.num_nodes}) conflicts with Ray's placement. Leave num_nodes out: this training has "
            f"{world_size} worker(s) on whatever nodes have room, by ScalingConfig(num_workers={world_size})"
        )
    own, asked = get_device(), trainer.strategy.parallel_devices or []
    if any(device.type != own.type for device in asked):
        raise InvalidArgumentError(
            f"the Trainer's accelerator is for {asked[0].type}, but this worker has {own.type}. Use "
            "Trainer(accelerator='auto'), and ScalingConfig(use_gpu=...) to choose"
        )
    if len(asked) not in (1, _visible_devices(own)):
        raise InvalidArgumentError(
            f"Trainer(devices={len(asked)}) asks Lightning for {len(asked)} processes, but each worker is one process with "
            f"one device. Use Trainer(devices='auto') and ScalingConfig(num_workers={len(asked)})"
        )


def _visible_devices(own: Any) -> int:
    import torch

    return torch.cuda.device_count() if own.type == "cuda" else 1


def _require_process_group() -> None:
    import torch.distributed

    if not torch.distributed.is_initialized():
        raise RuntimeError(
            "There is no process group to train in. Run this function with trainlib.torch.TorchTrainer, which sets one up."
        )
