"""Splitting a torch data loader across the workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.torch._model import get_device

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

__all__ = ["prepare_data_loader"]


def prepare_data_loader(
    data_loader: DataLoader[Any],
    add_dist_sampler: bool = True,
    move_to_device: bool = True,
    auto_transfer: bool = True,
) -> Any:
    """Give each worker its own part of the data, and move batches to its device.

    ``batch_size`` is per worker; the global batch size is ``batch_size * world_size``. A loader that shuffles still
    does, differently in each epoch.

    Example::

        loader = trainlib.torch.prepare_data_loader(DataLoader(dataset, batch_size=32, shuffle=True))
    """
    from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler
    from torch.utils.data.distributed import DistributedSampler

    context = session.get_context()
    iterable = isinstance(data_loader.dataset, IterableDataset)
    split = add_dist_sampler and context.world_size > 1 and not iterable
    if split and not isinstance(data_loader.sampler, DistributedSampler):
        if not isinstance(data_loader.sampler, (RandomSampler, SequentialSampler)):
            raise ValueError(
                f"the data loader has its own sampler, {type(data_loader.sampler).__name__}, and it would be replaced by a "
                "DistributedSampler. Pass add_dist_sampler=False if it splits the data between workers itself, or remove it"
            )
        if data_loader.batch_size is None:
            raise ValueError(
                "the data loader has its own batch sampler. Pass add_dist_sampler=False, and split the data in it"
            )
        sampler: DistributedSampler[Any] = DistributedSampler(
            data_loader.dataset,  # type: ignore[arg-type]
            num_replicas=context.world_size,
            rank=context.world_rank,
            shuffle=isinstance(data_loader.sampler, RandomSampler),
        )
        data_loader = DataLoader(
            data_loader.dataset,
            batch_size=data_loader.batch_size,
            sampler=sampler,
            num_workers=data_loader.num_workers,
            collate_fn=data_loader.collate_fn,
            pin_memory=data_loader.pin_memory,
            drop_last=data_loader.drop_last,
            timeout=data_loader.timeout,
            worker_init_fn=data_loader.worker_init_fn,
            multiprocessing_context=data_loader.multiprocessing_context,
            generator=data_loader.generator,
            prefetch_factor=data_loader.prefetch_factor,
            persistent_workers=data_loader.persistent_workers,
        )
    device = get_device()
    moves = move_to_device and device.type != "cpu"
    if not moves and not isinstance(data_loader.sampler, DistributedSampler):
        return data_loader
    return _DistributedLoader(data_loader, device if moves else None, non_blocking=auto_transfer)


class _DistributedLoader:
    """A data loader that moves its batches to a device, and sets the epoch so that each one is shuffled differently."""

    def __init__(self, loader: DataLoader[Any], device: torch.device | None, non_blocking: bool) -> None:
        self._loader = loader
        self._device = device
        self._non_blocking = non_blocking
        self._epoch = 0

    def __iter__(self) -> Iterator[Any]:
        from torch.utils.data.distributed import DistributedSampler

        sampler = self._loader.sampler
        if isinstance(sampler, DistributedSampler):
            # Not if the user calls set_epoch on the sampler.
            if sampler.epoch == self._epoch - 1 or self._epoch == 0 == sampler.epoch:
                sampler.set_epoch(self._epoch)
            self._epoch = sampler.epoch + 1
        for batch in self._loader:
            yield batch if self._device is None else _moved(batch, self._device, self._non_blocking)

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_loader"], name)


def _moved(batch: Any, device: torch.device, non_blocking: bool) -> Any:
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=non_blocking)
    if isinstance(batch, dict):
        return type(batch)({key: _moved(value, device, non_blocking) for key, value in batch.items()})
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_moved(value, device, non_blocking) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_moved(value, device, non_blocking) for value in batch)
    return batch
