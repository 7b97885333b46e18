"""Splitting a torch data loader across the workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.torch._devices import get_device
from trainlib.torch._nested import map_tensors

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

__all__ = ["prepare_data_loader"]


def prepare_data_loader(
    data_loader: DataLoader[Any],
    add_dist_sampler: bool = True,
    move_to_device: bool = True,
    auto_transfer: bool = True,
) -> DataLoader[Any]:
    """Give each worker its own part of the data, and move batches to its device.

    ``batch_size`` is per worker; the global batch size is ``batch_size * world_size``. A loader that shuffles still
    does, differently in each epoch. What a sampler or batch sampler of your own gives is dealt out to the workers, unless
    it splits the data itself, i.e. has an attribute ``num_replicas``. ``add_dist_sampler=False`` leaves any sampler as it is.

    The result is a data loader of the same class as the one that was given, which is not changed.

    Example::

        loader = trainlib.torch.prepare_data_loader(DataLoader(dataset, batch_size=32, shuffle=True))
    """
    from torch.utils.data import IterableDataset

    from trainlib.torch._samplers import split_by_rank

    if isinstance(data_loader, _Prepared):
        return data_loader
    context = session.get_context()
    changes: dict[str, Any] = {}
    if add_dist_sampler and context.world_size > 1 and not isinstance(data_loader.dataset, IterableDataset):
        changes = split_by_rank(data_loader, context.world_rank, context.world_size)
    device = get_device()
    moves_to = device if move_to_device and device.type != "cpu" else None
    return _prepared(data_loader, {**changes, "_moves_to": moves_to, "_non_blocking": auto_transfer, "_next_epoch": 0})


def _prepared(loader: DataLoader[Any], changes: dict[str, Any]) -> DataLoader[Any]:
    """A copy of the loader that is prepared, and of the user's class too: that may have methods of its own."""
    return _assembled(type(loader), {**vars(loader), **changes})


def _assembled(kind: type[DataLoader[Any]], state: dict[str, Any]) -> DataLoader[Any]:
    """A prepared loader of the user's class, with these attributes."""
    made: Any = type(kind.__name__, (_Prepared, kind), {"__module__": __name__, "_given_kind": kind})
    prepared = object.__new__(made)
    vars(prepared).update(state)  # assigned, another sampler would be refused
    return prepared  # type: ignore[no-any-return]


class _Prepared:
    """Moves batches to a device, and sets the epoch of the sampler so that each one is shuffled differently.

    Mixed into the class of a data loader.
    """

    sampler: Any
    batch_sampler: Any
    _moves_to: torch.device | None
    _non_blocking: bool
    _next_epoch: int
    _given_kind: type[DataLoader[Any]]
    """The user's class."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The class is made when a loader is prepared, so no pickle can name it: it is made again."""
        return _assembled, (self._given_kind, dict(vars(self)))

    def __iter__(self) -> Any:
        self._set_epoch()
        batches = super().__iter__()  # type: ignore[misc]
        return batches if self._moves_to is None else self._moved(batches)

    def _set_epoch(self) -> None:
        from torch.utils.data.distributed import DistributedSampler

        for sampler in (self.sampler, self.batch_sampler):
            if isinstance(sampler, DistributedSampler):
                # Not if the user calls set_epoch on the sampler.
                if sampler.epoch == self._next_epoch - 1 or self._next_epoch == 0 == sampler.epoch:
                    sampler.set_epoch(self._next_epoch)
                self._next_epoch = sampler.epoch + 1
                return

    def _moved(self, batches: Iterator[Any]) -> Iterator[Any]:
        def move(value: Any) -> Any:
            return value.to(self._moves_to, non_blocking=self._non_blocking) if hasattr(value, "to") else value

        for batch in batches:
            # Some batches are containers that can be moved as a whole.
            yield move(batch) if hasattr(batch, "to") else map_tensors(batch, move)
