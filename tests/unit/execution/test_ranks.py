"""Ranks are ordered by node."""

from __future__ import annotations

from trainlib._execution.ranks import rank_by_node


def places(nodes: str) -> list[tuple[int, int, int, int, int]]:
    return [
        (index, p.world_rank, p.local_rank, p.local_world_size, p.node_rank) for index, p in rank_by_node(list(nodes))
    ]


def test_one_node():
    assert places("aa") == [(0, 0, 0, 2, 0), (1, 1, 1, 2, 0)]


def test_two_and_two_workers_that_came_mixed():
    assert places("abab") == [(0, 0, 0, 2, 0), (2, 1, 1, 2, 0), (1, 2, 0, 2, 1), (3, 3, 1, 2, 1)]


def test_on_a_node_ranks_go_by_gpu():
    order = rank_by_node(["a", "b", "a"], [["10", "11"], ["0"], ["2", "3"]])
    assert [(index, place.local_rank) for index, place in order] == [(2, 0), (0, 1), (1, 0)]
    assert [index for index, _ in rank_by_node(["a", "a"], [["GPU-b"], ["GPU-a"]])] == [1, 0]
    assert [index for index, _ in rank_by_node(["a", "a"], [["0"], ["0"]])] == [0, 1]  # half of one for each


def test_three_and_one():
    assert places("aaba") == [(0, 0, 0, 3, 0), (1, 1, 1, 3, 0), (3, 2, 2, 3, 0), (2, 3, 0, 1, 1)]
