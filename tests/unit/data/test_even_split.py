"""No row is left out where workers have no equal shares, and none of them has more than one row more than another."""

from __future__ import annotations

import os

import pytest
import ray
from ray.data import DataContext
from ray.data._internal.execution.interfaces import BlockEntry, RefBundle
from ray.data._internal.execution.operators.input_data_buffer import InputDataBuffer
from ray.data._internal.execution.operators.output_splitter import OutputSplitter
from ray.data._internal.logical.operators import InputData, StreamingSplit
from ray.data._internal.planner.planner import Planner
from ray.data.block import BlockMetadata

from trainlib._data.even_split import EvenSplit, EvenSplitter


def block(rows: int) -> RefBundle:
    metadata = BlockMetadata(num_rows=rows, size_bytes=8 * rows, input_files=None, exec_stats=None)
    return RefBundle([BlockEntry(ray.ObjectRef(os.urandom(28)), metadata)], owns_blocks=False, schema=None)


def shares(splitter: type[OutputSplitter], rows: int, workers: int) -> list[int]:
    """How many rows each worker gets of a dataset with one row in each block, as Ray's executor hands them out."""
    context = DataContext.get_current()
    made = splitter(InputDataBuffer(context, []), workers, True, context)
    for _ in range(rows):
        made._add_input_inner(block(1), 0)
    made.all_inputs_done()
    got = [0] * workers
    while made.has_next():
        bundle = made._get_next_inner()
        got[bundle.output_split_idx] += bundle.num_rows()
    return got


@pytest.mark.parametrize(("rows", "workers"), [(32, 3), (15, 8), (8, 8), (5, 8), (1, 2), (1000, 7)])
def test_each_row_goes_to_one_worker_and_each_worker_gets_one_if_there_are_enough(rows, workers):
    got = shares(EvenSplitter, rows, workers)
    assert sum(got) == rows
    assert max(got) - min(got) <= 1
    assert sum(shares(OutputSplitter, rows, workers)) == rows - rows % workers, "what Ray itself would leave out"


def test_ray_plans_it_and_its_own_split_as_before():
    given, context = InputData(input_data=[block(3)]), DataContext.get_current()
    for kind, expected in ((EvenSplit, EvenSplitter), (StreamingSplit, OutputSplitter)):
        split = kind(num_splits=2, equal=True, input_dependencies=[given])
        planned = Planner().get_plan_fn(split)(split, [InputDataBuffer(context, [])], context)
        assert type(planned) is expected
