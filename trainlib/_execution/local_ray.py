"""A Ray of this machine alone: it listens on loopback, and runs no process that one machine does not need."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import ray

from trainlib._execution.network import LOOPBACK

__all__ = ["SPARE_CPUS", "only_loopback", "start_local"]

# Workers reserve CPUs for as long as they train. Without any left over, a data pipeline that feeds
# them would wait for a CPU for ever, and they for it.
SPARE_CPUS = 2

_NEVER_S = 10 * 365 * 24 * 3600


def start_local() -> None:
    """Start it. To be called within :func:`only_loopback`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _only_what_one_machine_needs():
        ray.init(
            address="local",  # not one that somebody else has started on this machine
            num_cpus=(os.cpu_count() or 1) + SPARE_CPUS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _system_config={
                # Ray makes workers yield to everything else by default. Here they are what the machine is for.
                "worker_niceness": 0,
                # A minute after its control service is gone, Ray ends every process that is connected to it, also a notebook
                # that has joined a platform and trains nothing.
                "gcs_rpc_server_reconnect_timeout_s": _NEVER_S,
            },
            _node_ip_address=LOOPBACK,
        )


@contextmanager
def only_loopback() -> Iterator[None]:
    """Let Ray accept the loopback address for its node, as it does by itself on systems where it starts no clusters.

    Otherwise it takes the address of the host in its place, and all its processes listen on all interfaces.
    """
    from ray._private import ray_constants

    may_start_clusters = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = may_start_clusters


@contextmanager
def _only_what_one_machine_needs() -> Iterator[None]:
    """Start Ray without its autoscaler, which has nothing to scale, and without the process that sends workers' output to
    drivers, which nobody reads. Each takes a second of processor time at every start."""
    from ray._private import parameter

    settings: Any = parameter.RayParams
    parameter.RayParams = partial(settings, no_monitor=True, include_log_monitor=False)  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        parameter.RayParams = settings  # type: ignore[misc]
