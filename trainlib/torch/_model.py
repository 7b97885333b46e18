"""Moving a torch model to its device, and wrapping it for distributed training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.torch._devices import get_device

if TYPE_CHECKING:
    import torch

__all__ = ["prepare_model"]


def prepare_model(
    model: torch.nn.Module,
    move_to_device: bool | torch.device = True,
    wrap_ddp: bool = True,
    ddp_kwargs: dict[str, Any] | None = None,
    parallel_strategy: str | None = "ddp",
    parallel_strategy_kwargs: dict[str, Any] | None = None,
) -> torch.nn.Module:
    """Move a model to this worker's device and, if there are several workers, wrap it for data-parallel training.

    Example::

        model = trainlib.torch.prepare_model(NeuralNetwork())
    """
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    from trainlib.torch import _amp as amp

    if parallel_strategy not in ("ddp", "fsdp", None):
        raise ValueError(f"parallel_strategy is {parallel_strategy!r}. Use 'ddp', 'fsdp' or None")
    context = session.get_context()
    device = get_device() if isinstance(move_to_device, bool) else move_to_device
    if move_to_device:
        model = model.to(device)
    model = amp.autocast_forward(model, device)
    if not wrap_ddp or parallel_strategy is None or context.world_size == 1:
        return model
    options = {**(ddp_kwargs or {}), **(parallel_strategy_kwargs or {})}
    if parallel_strategy == "fsdp":
        return FullyShardedDataParallel(model, **options)
    if device.type == "cuda":
        options = {"device_ids": [device], "output_device": device, **options}
    return DistributedDataParallel(model, **options)
