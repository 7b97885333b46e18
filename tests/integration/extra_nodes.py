"""Real nodes besides the session's own: more raylets on this machine, which join the session's Ray for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import ray
from ray._private.node import Node
from ray._private.parameter import RayParams

from tests.addresses import address_for_other_hosts
from trainlib._execution import become_worker, cluster

SEAT = "seat"
"""What only these nodes have: a worker that asks for one is placed on them."""


@contextmanager
def extra_nodes(seats: Sequence[int], gpus: int = 0) -> Iterator[None]:
    """Nodes with so many seats each, for as long as the block runs. They say that each has so many GPUs.

    The first has the address of the session's own node, which is loopback, and the others that of this machine for other hosts: workers
    on both take them for two hosts.
    """
    cluster.connect()
    nodes = [_start(count, gpus, address_for_other_hosts() if place else None) for place, count in enumerate(seats)]
    try:
        yield
    finally:
        for node in nodes:
            node.kill_all_processes(check_alive=False, allow_graceful=True, wait=True)


def _start(seats: int, gpus: int, address: str | None) -> Node:
    settings = RayParams(
        **({"node_ip_address": address} if address else {}),
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
        setup_worker_path=become_worker.__file__,
    )
    return Node(settings, head=False, shutdown_at_exit=True, spawn_reaper=False)
