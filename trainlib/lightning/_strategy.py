"""Data-parallel training in the process group that exists already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trainlib.errors import InvalidArgumentError
from trainlib.lightning._package import OfLightning
from trainlib.torch._devices import get_device

if TYPE_CHECKING:
    import torch

__all__ = ["RayDDPStrategy"]

_INSTEAD = {
    "process_group_backend": "TorchTrainer(torch_config=TorchConfig(backend=...)) sets it",
    "timeout": "TorchTrainer(torch_config=TorchConfig(timeout_s=...)) sets it",
    "start_method": "Lightning starts no processes here, the workers are there already",
    "cluster_environment": "pass it to Lightning's Trainer, plugins=[RayLightningEnvironment()]",
}


class RayDDPStrategy(OfLightning):
    """Averages gradients over all workers of a TorchTrainer.

    It takes the arguments of Lightning's ``DDPStrategy``, e.g. ``find_unused_parameters=True``, but for those that set up a
    process group: there is one already.

    Example:
        >>> from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment
        >>> def train_func():
        ...     import lightning.pytorch as pl
        ...     trainer = pl.Trainer(strategy=RayDDPStrategy(), plugins=[RayLightningEnvironment()])

    Raises:
        InvalidArgumentError: an argument would set up another process group.
    """

    extends: ClassVar[str] = "strategies:DDPStrategy"

    world_size: int
    global_rank: int
    parallel_devices: list[torch.device] | None

    def __init__(self, **options: Any) -> None:
        for name in options.keys() & _INSTEAD.keys():
            raise InvalidArgumentError(f"RayDDPStrategy takes no {name}: {_INSTEAD[name]}")
        super().__init__(**options)

    @property
    def root_device(self) -> torch.device:
        """This worker's device: its own GPU, or the CPU."""
        return get_device()

    @property
    def distributed_sampler_kwargs(self) -> dict[str, int]:
        """What part of the data is this worker's."""
        return {"num_replicas": self.world_size, "rank": self.global_rank}
