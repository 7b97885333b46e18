"""Which GPUs a worker sees, and which of them are its own."""

from __future__ import annotations

import pytest

from trainlib._execution.gpus import indices_of, shared_by_node


def test_workers_of_a_node_see_all_gpus_of_their_gang_there():
    assert shared_by_node(["a", "a"], [["0"], ["1"]]) == [["0", "1"], ["0", "1"]]
    assert shared_by_node(["a", "b", "a"], [["10", "11"], ["0"], ["2", "3"]]) == [
        ["2", "3", "10", "11"],
        ["0"],
        ["2", "3", "10", "11"],
    ]
    assert shared_by_node(["a", "a"], [["1"], ["1"]]) == [["1"], ["1"]]  # half of it for each
    assert shared_by_node(["a"], [[]]) == [[]]


def test_a_worker_finds_its_own_gpus_among_those_it_sees():
    assert indices_of(["2", "3"], "0,1,2,3") == [2, 3]
    assert indices_of(["7"], "7") == [0]
    assert indices_of(["GPU-b"], "GPU-a,GPU-b") == [1]
    assert indices_of(["3", "2"], None) == [2, 3]
    with pytest.raises(RuntimeError, match="cannot see GPU 1, which it has reserved"):
        indices_of(["1"], "0")
