"""Which worker gets which rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainlib._execution.gpus import gpu_order


@dataclass(frozen=True)
class Place:
    """A worker's place in its gang."""

    world_rank: int
    local_rank: int
    local_world_size: int
    node_rank: int


def rank_by_node(nodes: Sequence[str], gpus: Sequence[Sequence[str]] | None = None) -> list[tuple[int, Place]]:
    """Ranks for workers whose nodes are given: pairs of (index into ``nodes``, place), by rank.

    Workers of one node get neighbouring ranks, because collectives are cheapest between neighbours.
    Nodes keep the order in which they first appear. On a node, ranks go by the ids of the workers' ``gpus``, so that the
    GPU of each is that of its local rank.

    Example:
        >>> [(index, place.world_rank, place.local_rank) for index, place in rank_by_node(["a", "b", "a"])]
        [(0, 0, 0), (2, 1, 1), (1, 2, 0)]
    """
    by_node: dict[str, list[int]] = {}
    for index, node in enumerate(nodes):
        by_node.setdefault(node, []).append(index)
    order: list[tuple[int, Place]] = []
    if gpus is not None:
        for indices in by_node.values():
            indices.sort(key=lambda index: min(map(gpu_order, gpus[index]), default=(0, "")))
    for node_rank, indices in enumerate(by_node.values()):
        for local_rank, index in enumerate(indices):
            order.append((index, Place(len(order), local_rank, len(indices), node_rank)))
    return order
