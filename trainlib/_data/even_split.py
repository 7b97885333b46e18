"""Splits a dataset across workers so that none of its rows is left out, and none has more than one row more than another.

Ray's own ``streaming_split`` either leaves rows out, or hands out blocks as they are: a dataset of one block would go to one worker.
"""

from __future__ import annotations

from typing import Any

from ray.data import DataIterator, Dataset
from ray.data._internal.execution.interfaces import RefBundle
from ray.data._internal.execution.operators.output_splitter import OutputSplitter
from ray.data._internal.iterator.stream_split_iterator import StreamSplitDataIterator
from ray.data._internal.logical.interfaces import LogicalPlan
from ray.data._internal.logical.operators import StreamingSplit
from ray.data._internal.planner.planner import Planner

__all__ = ["EvenSplitter", "split_evenly"]


def split_evenly(dataset: Dataset, workers: int, *, locality_hints: list[str] | None) -> list[DataIterator]:
    """What ``dataset.streaming_split(workers, equal=True)`` returns, with the rows that it leaves out: one more for each of the first workers."""
    split = EvenSplit(
        num_splits=workers,
        equal=True,
        input_dependencies=[dataset._logical_plan.dag],
        locality_hints=locality_hints,
    )
    parent = Dataset._from_parent(dataset, LogicalPlan(split, dataset.context))
    parent._set_uuid(dataset._uuid)
    return [*StreamSplitDataIterator.create(parent, workers, locality_hints)]


class EvenSplit(StreamingSplit):
    """What is planned. The actor that splits imports this module when it is sent one."""


class EvenSplitter(OutputSplitter):
    """What does it. Blocks go to the workers as with ``equal=True``; those that are kept for the end also hold the rows that do not divide."""

    _left_over = 0

    def all_inputs_done(self) -> None:
        """The last block has come."""
        outputs = len(self._num_output)
        self._left_over = (sum(self._num_output) + self._buffer.num_rows()) % outputs
        super().all_inputs_done()

    def _split_from_buffer(self, nrow: int) -> list[RefBundle]:
        """The rest of a worker's rows. Called once for each worker, at the end."""
        more = 1 if self._left_over else 0
        self._left_over -= more
        found: list[RefBundle] = super()._split_from_buffer(nrow + more)
        return found


def _planned(split: EvenSplit, inputs: list[Any], context: Any) -> EvenSplitter:
    (rows,) = inputs
    return EvenSplitter(rows, n=split.num_splits, equal=True, data_context=context, locality_hints=split.locality_hints)


# The first entry that fits is used, and a StreamingSplit fits as well.
Planner._DEFAULT_PLAN_FNS = {EvenSplit: _planned, **Planner._DEFAULT_PLAN_FNS}
