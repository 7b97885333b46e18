"""Getting Ray and the workers ready before they are needed."""

from __future__ import annotations

import threading

import ray

from trainlib._execution import cluster
from trainlib._execution.backend import BackendConfig
from trainlib._execution.gang import never_fits
from trainlib._execution.group import kind_of
from trainlib._execution.pool import pool
from trainlib.config import ScalingConfig
from trainlib.errors import ConnectionFailedError

_preparing: threading.Thread | None = None


def start(scaling: ScalingConfig, backend: BackendConfig) -> None:
    """Connect to Ray and warm the workers of a gang, behind whatever comes next.

    It only saves time: an attempt does what is missing itself.
    """
    global _preparing
    _preparing = threading.Thread(target=_prepare, args=(_preparing, scaling, backend), name="prepare-ray", daemon=True)
    _preparing.start()


def wait() -> None:
    """Return when what was started is done, so that nothing is done twice."""
    if _preparing is not None:
        _preparing.join()


def _prepare(before: threading.Thread | None, scaling: ScalingConfig, backend: BackendConfig) -> None:
    if before is not None:
        before.join()  # who waits for this one, waits for both
    try:
        cluster.connect()
    except ConnectionFailedError:
        return  # the attempt meets it again, and tells
    # On more than one node it is not known yet where the gang will be; workers with GPUs cannot be warmed.
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) == 1 and not scaling.use_gpu and never_fits(scaling) is None:
        pool.warm(kind_of(scaling, backend, nodes[0]["NodeID"]), scaling.num_workers)
