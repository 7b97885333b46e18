"""One worker's share of a dataset, which a training function reads epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ray.data import DataIterator, Dataset
from ray.data._internal.iterator.iterator_impl import DataIteratorImpl
from ray.data._internal.iterator.stream_split_iterator import StreamSplitDataIterator

from trainlib._data.pipeline_errors import readable_errors
from trainlib._data.quiet import quiet
from trainlib.errors import DataError

__all__ = ["DatasetShard"]


class DatasetShard(DataIterator):
    """One worker's share of a dataset, with all methods of Ray Data's iterators.

    Every loop over ``iter_batches()``, ``iter_torch_batches()``, ``to_tf()`` and so on is an epoch, and reads the share
    from its start. Otherwise it is Ray's own iterator, plus a row count.
    """

    def __init__(self, name: str, shard: DataIterator, *, may_be_empty: bool, is_whole: bool = False) -> None:
        self._name = name
        self._shard = shard
        self._may_be_empty = may_be_empty
        self.is_whole = is_whole
        """Whether every worker reads the whole dataset, and not a share of its own."""
        self._on_epoch: Callable[[str, int], None] | None = None
        self._refusal: Exception | None = None
        self._starting: object | None = None
        """Set while an epoch is starting or running. An epoch starts on all workers at once."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on_epoch": None, "_starting": None}

    def on_epoch_end(self, on_epoch: Callable[[str, int], None]) -> DatasetShard:
        """Call a function after each complete epoch with the dataset's name and the number of rows. Returns itself."""
        quiet()
        self._on_epoch = on_epoch
        return self

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self._name

    def whole(self) -> Dataset:
        """The Ray Dataset that this worker reads. Only for one that is not split across the workers."""
        assert isinstance(self._shard, DataIteratorImpl)
        quiet()
        return self._shard._base_dataset

    def count_rows(self) -> int:
        """The number of rows of an epoch. Runs the pipeline once, without fetching the rows.

        If epochs start on all workers at once, all of them have to call it.
        """
        with readable_errors(f"the dataset {self._name!r}"):
            bundles, _, executor = self._shard._to_ref_bundle_iterator()
            try:
                return sum(bundle.num_rows() or 0 for bundle in bundles)
            finally:
                self._shard._on_iteration_end(executor)

    def refuse_epochs(self, error: Exception) -> bool:
        """Let no further epoch start, if epochs start on all workers at once. Returns whether one is waiting to start."""
        if not isinstance(self._shard, StreamSplitDataIterator):
            return False
        self._refusal = error
        return self._starting is not None and self._shard._active_epoch is None

    def stats(self) -> str:
        """How long each step took, as text."""
        return self._shard.stats()

    def schema(self) -> Any:
        """Names and types of the columns."""
        return self._shard.schema()

    def get_context(self) -> Any:
        """Ray Data's settings for this dataset."""
        return self._shard.get_context()

    def __repr__(self) -> str:
        return f"DatasetShard({self._name!r})"

    # -- what all ways of reading call -------------------------------------------------------------------

    def _to_ref_bundle_iterator(self) -> Any:
        with readable_errors(
            f"the dataset {self._name!r}"
        ):  # for a dataset that is not split, this already reads the first rows
            bundles, stats, executor = self._shard._to_ref_bundle_iterator()
        if isinstance(self._shard, StreamSplitDataIterator):
            self._shard._active_epoch = None  # until all workers have started this one
        return self._counted(bundles), stats, executor

    def _counted(self, bundles: Iterator[Any]) -> Iterator[Any]:
        rows = 0
        this = self._starting = object()
        try:
            if self._refusal is not None:
                raise self._refusal
            with readable_errors(f"the dataset {self._name!r}"):
                for bundle in bundles:
                    rows += bundle.num_rows() or 0
                    yield bundle
        finally:
            if self._starting is this:  # a loop that was left early is closed only after the next one has started
                self._starting = None
        if rows == 0 and not self._may_be_empty:
            raise DataError(
                f"the dataset {self._name!r} has no rows for this worker. It is empty, or has fewer rows than there are workers: "
                "use fewer workers, or more data"
            )
        if self._on_epoch is not None:
            self._on_epoch(self._name, rows)

    def _on_iteration_end(self, executor: Any) -> None:
        self._shard._on_iteration_end(executor)

    def _get_dataset_tag(self) -> Any:
        return self._shard._get_dataset_tag()
