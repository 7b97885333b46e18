"""What a training function reads: its share of a dataset, epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ray.data import DataIterator
from ray.data._internal.iterator.stream_split_iterator import StreamSplitDataIterator

from trainlib._data.pipeline_errors import readable_errors
from trainlib.errors import DataError

__all__ = ["DatasetShard"]


class DatasetShard(DataIterator):
    """One worker's share of a dataset, with all the ways of reading that Ray Data's iterators have.

    Every loop over ``iter_batches()``, ``iter_torch_batches()``, ``to_tf()`` and so on is an epoch, and reads the share
    from its start. It counts the rows; nothing else is different from the iterator that it stands before.
    """

    def __init__(self, name: str, shard: DataIterator, *, may_be_empty: bool) -> None:
        self._name = name
        self._shard = shard
        self._may_be_empty = may_be_empty
        self._on_epoch: Callable[[str, int], None] | None = None
        self._refusal: Exception | None = None
        self._begins: object | None = None
        """The epoch that is being waited for, if one is: it begins on all workers at once."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on_epoch": None, "_begins": None}

    def on_epoch_end(self, on_epoch: Callable[[str, int], None]) -> DatasetShard:
        """Have somebody told of each whole epoch: the dataset's name, and how many rows were read. Gives itself."""
        self._on_epoch = on_epoch
        return self

    def refuse_epochs(self, error: Exception) -> bool:
        """Let no further epoch begin, if it begins on all workers at once. Tells whether one is being waited for."""
        if not isinstance(self._shard, StreamSplitDataIterator):
            return False
        self._refusal = error
        return self._begins is not None and self._shard._active_epoch is None

    def stats(self) -> str:
        """How long each step took, as a text."""
        return self._shard.stats()

    def schema(self) -> Any:
        """Names and types of the columns."""
        return self._shard.schema()

    def get_context(self) -> Any:
        """Ray Data's settings for this dataset."""
        return self._shard.get_context()

    def __repr__(self) -> str:
        return f"DatasetShard({self._name!r})"

    # -- what all the ways of reading come down to ------------------------------------------------------

    def _to_ref_bundle_iterator(self) -> Any:
        with readable_errors(f"the dataset {self._name!r}"):  # of a whole dataset, this reads the first rows already
            bundles, stats, executor = self._shard._to_ref_bundle_iterator()
        if isinstance(self._shard, StreamSplitDataIterator):
            self._shard._active_epoch = None  # until all workers have begun this one
        return self._counted(bundles), stats, executor

    def _counted(self, bundles: Iterator[Any]) -> Iterator[Any]:
        rows = 0
        this = self._begins = object()
        try:
            if self._refusal is not None:
                raise self._refusal
            with readable_errors(f"the dataset {self._name!r}"):
                for bundle in bundles:
                    rows += bundle.num_rows() or 0
                    yield bundle
        finally:
            if self._begins is this:  # a loop that was left early is closed when the next one has begun
                self._begins = None
        if rows == 0 and not self._may_be_empty:
            raise DataError(
                f"the dataset {self._name!r} has no row for this worker: it is empty, or has fewer rows than there are "
                "workers. Use fewer workers, or more data."
            )
        if self._on_epoch is not None:
            self._on_epoch(self._name, rows)

    def _on_iteration_end(self, executor: Any) -> None:
        self._shard._on_iteration_end(executor)

    def _get_dataset_tag(self) -> Any:
        return self._shard._get_dataset_tag()
