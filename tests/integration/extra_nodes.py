"""Real nodes besides the session's own: more raylets on this machine, which join the session's Ray for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import ray
from ray._private.node import Node
from ray._private.parameter import RayParams

from trainlib._execution import cluster

SEAT = "seat"
"""What only these nodes have: a worker that asks for one is placed on them."""


@contextmanager
def extra_nodes(seats: Sequence[int], gpus: int = 0) -> Iterator[None]:
    """Nodes with so many seats each, for as long as the block runs. They say that each has so many GPUs."""
    cluster.connect()
    nodes = [_start(count, gpus) for count in seats]
    try:
        yield
    finally:
        for node in nodes:
            node.kill_all_processes(check_alive=False, allow_graceful=True, wait=True)


def _start(seats: int, gpus: int) -> Node:
    settings = RayParams(
        gcs_address=ray.get_runtime_context().gcs_address,
        num_cpus=seats,
        num_gpus=gpus,
        resources={SEAT: seats},
        object_store_memory=150 * 1024**2,
        min_worker_port=0,
        max_worker_port=0,
        node_manager_port=0,
        dashboard_agent_listen_port=None,
        include_log_monitor=False,
    )
    return Node(settings, head=False, shutdown_at_exit=True, spawn_reaper=False)
