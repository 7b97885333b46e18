"""Data loaders that are shared by the ranks."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from collections import Counter, namedtuple
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from trainlib.torch import _data_loader, prepare_data_loader


class Numbers(Dataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return index


class OwnLoader(DataLoader[int]):
    """A user's own kind of loader."""

    def with_noise(self) -> str:
        return "noise"

    def __iter__(self) -> Any:
        return (batch + 100 for batch in super().__iter__())


class Shuffled(Sampler[int]):
    """Without a generator of its own, and with three sources of random numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.count))
        random.shuffle(order)
        return iter([order[index] for index in torch.randperm(self.count).tolist()])


class Endless(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        index = 0
        while True:
            yield index
            index += 1


def flat(lists: list[list[Any]]) -> list[Any]:
    return list(itertools.chain.from_iterable(lists))


@pytest.fixture
def read(as_rank):
    """What each rank of a gang reads, batch by batch, in one epoch or several."""

    def read_all(make: Any, *, ranks: int = 2, epochs: int = 1, **options: Any) -> list[list[list[int]]]:
        result: list[list[list[int]]] = []
        for rank in range(ranks):
            as_rank(rank, ranks)
            torch.manual_seed(rank)  # as different as processes are
            random.seed(rank)
            loader = prepare_data_loader(make(), **options)
            assert isinstance(loader, DataLoader)
            result.append([batch.tolist() for _ in range(epochs) for batch in loader])
        return result

    return read_all


def test_a_prepared_loader_is_a_data_loader_of_the_users_own_class(as_rank):
    as_rank(1, 2)
    given = OwnLoader(Numbers(8), batch_size=2, shuffle=True, drop_last=True)
    loader = prepare_data_loader(given)
    assert isinstance(loader, OwnLoader)
    assert loader is not given
    assert (len(loader), loader.batch_size, loader.drop_last, loader.with_noise()) == (2, 2, True, "noise")
    assert isinstance(loader.sampler, DistributedSampler)
    assert loader.batch_sampler.sampler is loader.sampler
    assert all(number >= 100 for batch in loader for number in batch)
    assert isinstance(given.sampler, RandomSampler)  # the user's own is as it was
    assert prepare_data_loader(loader).sampler is loader.sampler


def test_a_prepared_loader_can_be_pickled_and_copied(as_rank):
    as_rank(1, 2)
    loader = prepare_data_loader(OwnLoader(Numbers(8), batch_size=2, shuffle=True))
    first = [batch.tolist() for batch in loader]
    twins = [pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)]
    second = [batch.tolist() for batch in loader]
    assert first != second
    for twin in twins:
        assert isinstance(twin, OwnLoader)
        assert prepare_data_loader(twin) is twin
        assert twin.batch_sampler.sampler is twin.sampler
        assert [batch.tolist() for batch in twin] == second, "it goes on with the epoch after the first"


def test_ranks_share_the_rows_and_each_epoch_is_shuffled_differently(read):
    first, second = read(lambda: DataLoader(Numbers(8), batch_size=2, shuffle=True), epochs=2)
    for epoch in (slice(0, 2), slice(2, 4)):
        assert sorted(flat(first[epoch] + second[epoch])) == list(range(8))
    assert first[:2] != first[2:]


def test_processes_that_load_still_do(as_rank):
    as_rank(0, 2)
    loader = prepare_data_loader(DataLoader(Numbers(8), batch_size=2, num_workers=1, persistent_workers=True))
    assert [batch.tolist() for _ in range(2) for batch in loader] == [[0, 2], [4, 6]] * 2


def test_a_custom_sampler_is_shared_by_the_ranks(read):
    first, second = read(lambda: DataLoader(Numbers(100), batch_size=2, sampler=Shuffled(8)), epochs=2)
    for epoch in (slice(0, 2), slice(2, 4)):
        assert sorted(flat(first[epoch] + second[epoch])) == list(range(8))
    assert first[:2] != first[2:]

    indices = [3, 5, 7]  # three for two ranks: one is read twice, so that both have as many batches
    ranks = read(lambda: DataLoader(Numbers(100), sampler=SubsetRandomSampler(indices)))
    counts = Counter(flat(flat(ranks)))
    assert set(counts) == set(indices)
    assert sorted(counts.values()) == [1, 1, 2]


def test_a_weighted_sampler_keeps_its_weights_and_its_length(read):
    weights = [0.0] * 5 + [1.0] * 5
    ranks = read(lambda: DataLoader(Numbers(10), batch_size=4, sampler=WeightedRandomSampler(weights, 40)), ranks=4)
    drawn = flat(flat(ranks))
    assert len(drawn) == 40
    assert min(drawn) >= 5
    assert [len(flat(rank)) for rank in ranks] == [10] * 4

    ranks = read(lambda: DataLoader(Numbers(10), sampler=RandomSampler(Numbers(10), replacement=True, num_samples=6)))
    assert [len(rank) for rank in ranks] == [3, 3]


def test_sampling_does_not_touch_the_random_numbers_of_the_training_function(as_rank):
    as_rank(0, 2)
    loader = prepare_data_loader(DataLoader(Numbers(8), sampler=Shuffled(8)))
    torch.manual_seed(7)
    random.seed(7)
    expected = torch.rand(1), random.random()
    torch.manual_seed(7)
    random.seed(7)
    list(loader.sampler)
    assert (torch.rand(1), random.random()) == expected


def test_batches_of_a_custom_batch_sampler_are_shared_by_the_ranks(read):
    def make() -> DataLoader[int]:
        return DataLoader(Numbers(100), batch_sampler=BatchSampler(Shuffled(9), batch_size=2, drop_last=False))

    ranks = read(make)
    assert [len(rank) for rank in ranks] == [3, 3]  # five batches for two ranks
    assert set(flat(flat(ranks))) == set(range(9))


def test_a_loader_without_batches_is_shared_too(as_rank):
    as_rank(1, 2)
    loader = prepare_data_loader(DataLoader(Numbers(6), batch_size=None))
    assert list(loader) == [1, 3, 5]
    assert len(loader) == 3


def test_a_sampler_without_an_end_is_read_in_turns(as_rank):
    as_rank(1, 2)
    batches = iter(prepare_data_loader(DataLoader(Numbers(100), batch_size=2, sampler=Endless())))
    assert [next(batches).tolist(), next(batches).tolist()] == [[1, 3], [5, 7]]


def test_a_sampler_that_splits_by_itself_is_kept(as_rank):
    class Own(Shuffled):
        num_replicas = 2
        rank = 1

    as_rank(1, 2)
    own, distributed = Own(4), DistributedSampler(Numbers(4), num_replicas=2, rank=1)
    assert prepare_data_loader(DataLoader(Numbers(4), sampler=own)).sampler is own
    assert prepare_data_loader(DataLoader(Numbers(4), sampler=distributed)).sampler is distributed
    other = Shuffled(4)
    assert prepare_data_loader(DataLoader(Numbers(4), sampler=other), add_dist_sampler=False).sampler is other


def test_the_user_may_set_the_epoch(as_rank):
    class Told(Shuffled):
        epoch = -1

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    as_rank(0, 2)
    told = Told(8)
    loader = prepare_data_loader(DataLoader(Numbers(8), sampler=told))
    assert isinstance(loader.sampler, DistributedSampler)
    seen = []
    for epoch in (5, 6):
        loader.sampler.set_epoch(epoch)
        list(loader)
        seen.append(told.epoch)
    list(loader)
    assert [*seen, told.epoch] == [5, 6, 7]


def test_an_iterable_dataset_is_left_alone(as_rank):
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    as_rank(0, 2)
    assert list(prepare_data_loader(DataLoader(Stream(), batch_size=None))) == [0, 1, 2]


def test_batches_of_any_shape_are_moved_to_the_device(as_rank, monkeypatch):
    monkeypatch.setattr(_data_loader, "get_device", lambda: torch.device("meta"))
    pair = namedtuple("pair", "x y")

    def collate(rows: list[int]) -> Any:
        x = torch.tensor(rows)
        return {"x": x, "pair": pair(x, "text"), "list": [x, (x, 1)]}

    as_rank(0, 1)
    loader = prepare_data_loader(DataLoader(Numbers(2), batch_size=2, collate_fn=collate))
    assert isinstance(loader, DataLoader)
    (batch,) = loader
    moved = [batch["x"], batch["pair"].x, batch["list"][0], batch["list"][1][0]]
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert batch["pair"].y == "text"
    assert batch["list"][1][1] == 1
    (batch,) = prepare_data_loader(DataLoader(Numbers(2), batch_size=2, collate_fn=collate), move_to_device=False)
    assert batch["x"].device.type == "cpu"
