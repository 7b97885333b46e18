"""Samplers for one rank: its share of what a sampler gives, which knows nothing of ranks."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

__all__ = ["SharedSampler", "split_by_rank"]


def split_by_rank(loader: DataLoader[Any], rank: int, world_size: int) -> dict[str, Any]:
    """The attributes that a loader needs to give each rank its own part; none if it splits by itself.

    A loader without a sampler of its own gets a DistributedSampler. What a user's own sampler or batch sampler gives is
    dealt out to the ranks.
    """
    if loader.batch_sampler is not None and loader.batch_size is None:  # a batch sampler of the user's own
        if _splits_by_itself(loader.batch_sampler):
            return {}
        return {"batch_sampler": SharedSampler(loader.batch_sampler, rank, world_size)}
    if _splits_by_itself(loader.sampler):
        return {}
    sampler: Any = SharedSampler(loader.sampler, rank, world_size)
    if _is_default(loader.sampler):
        shuffle = isinstance(loader.sampler, RandomSampler)
        sampler = DistributedSampler(loader.dataset, num_replicas=world_size, rank=rank, shuffle=shuffle)  # type: ignore[arg-type]
    if loader.batch_size is None:  # each row by itself
        return {"sampler": sampler}
    return {"sampler": sampler, "batch_sampler": BatchSampler(sampler, loader.batch_size, loader.drop_last)}


def _splits_by_itself(sampler: Any) -> bool:
    """Whether it knows its rank. Also one that wraps such a sampler, as a BatchSampler does."""
    inner = getattr(sampler, "sampler", None)
    return hasattr(sampler, "num_replicas") or (inner is not None and _splits_by_itself(inner))


def _is_default(sampler: Any) -> bool:
    """Whether DataLoader has made it, for ``shuffle=True`` or ``False``."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples == len(sampler.data_source)
    return type(sampler) is SequentialSampler


class SharedSampler(DistributedSampler[Any]):
    """Every n-th of what another sampler gives, rows or batches.

    All ranks draw the same order and each takes its part, so random numbers must be the same on all of them: the global
    generators of torch, Python and numpy have the seed of the epoch while the sampler draws. A generator of the sampler's
    own is not touched, and has to be seeded equally on all ranks. A sampler without a length may have no end. It is read
    as it goes.
    """

    def __init__(self, sampler: Any, rank: int, world_size: int) -> None:
        self._given = sampler
        # Not DistributedSampler.__init__, which needs a dataset with a length. These are its public attributes.
        self.num_replicas, self.rank, self.epoch, self.seed = world_size, rank, 0, 0
        self.drop_last, self.shuffle = False, False

    def __iter__(self) -> Iterator[Any]:
        if not hasattr(self._given, "__len__"):
            return itertools.islice(iter(self._given), self.rank, None, self.num_replicas)
        with _seeded(self.seed + self.epoch):
            drawn = list(self._given)
        # So that all ranks have equally many, the first ones are used again at the end.
        missing = -len(drawn) % self.num_replicas
        drawn += list(itertools.islice(itertools.cycle(drawn), missing))
        return iter(drawn[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return -(-len(self._given) // self.num_replicas)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, so that its order differs from that of others."""
        self.epoch = epoch
        if hasattr(self._given, "set_epoch"):
            self._given.set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        if name == "_given":  # not there yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self._given, name)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators for a while. Afterwards they go on as if nothing had happened."""
    states = torch.get_rng_state(), random.getstate()
    numpy: Any = sys.modules.get("numpy")
    state_of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which also seeds the GPUs
        random.seed(seed)
        if numpy is not None:
            numpy.random.seed(seed)
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.random.set_state(state_of_numpy)
