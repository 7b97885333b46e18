"""A dataset of the trainer as what a ``transformers.Trainer`` takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch.distributed
from torch.utils.data import IterableDataset

from trainlib import session
from trainlib._data.shard import DatasetShard
from trainlib.errors import DataError

__all__ = ["ShardRows", "rows_of"]

# How many rows are fetched and converted at a time.
_FETCHED = 256


class ShardRows(IterableDataset):  # type: ignore[type-arg]
    """The rows of a shard as dicts of Python's own values, as a data collator expects them. It is streamed, and has a length.

    If each worker has rows of its own, all give equally many of them: a rank with one batch more than the others would wait
    for them for ever.
    """

    def __init__(self, shard: DatasetShard, *, is_own: bool) -> None:
        self._shard = shard
        self.is_own = is_own
        """Whether each worker has rows of its own. Otherwise each has all of them."""
        self._rows = shard.count_rows()
        if is_own and session.get_world_size() > 1:
            self._rows = _least(self._rows)
        if self._rows == 0:
            raise DataError(
                f"the dataset {shard.name!r} has no rows for one of the workers. It is empty, or has fewer rows than there are "
                "workers: use fewer workers, or more data"
            )

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        batches: Iterable[Any] = self._shard.iter_batches(
            batch_size=_FETCHED, batch_format="pyarrow", prefetch_batches=1
        )
        rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
        return itertools.islice(_looking_ahead(rows), self._rows)


def rows_of(name: str) -> ShardRows | None:
    """This worker's rows of one of the trainer's datasets. None if the trainer has no such dataset. All ranks must call it."""
    if name not in session.current("get_dataset_shard").dataset_names:
        return None
    shard = session.get_dataset_shard(name)
    assert shard is not None
    return ShardRows(shard, is_own=not shard.is_whole)


def _looking_ahead(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows. The shard has been read to its end when its last row is given: nobody asks for one more."""
    for previous, row in itertools.pairwise(itertools.chain(rows, [None])):
        assert previous is not None, row
        yield previous


def _least(rows: int) -> int:
    """The least number over all ranks."""
    found: list[int] = [0] * session.get_world_size()
    torch.distributed.all_gather_object(found, rows)
    return min(found)
