"""Getting Ray and the workers ready before they are needed."""

from __future__ import annotations

import contextlib
import threading

import ray

from trainlib._execution import cluster
from trainlib._execution.backend import BackendConfig
from trainlib._execution.gang import fitted_to_cluster, never_fits
from trainlib._execution.pool.choosing import kind_of, pool_of
from trainlib.config import ScalingConfig
from trainlib.errors import TrainlibError

_lock = threading.Lock()
_running: threading.Thread | None = None


def start(scaling: ScalingConfig, backend: BackendConfig) -> None:
    """Connect to Ray and start the workers of a gang in the background.

    This only saves time: an attempt does itself what is missing.
    """
    global _running
    with _lock:  # trainings may start side by side, and a thread that has not started cannot be waited for
        thread = threading.Thread(target=_warm_up, args=(_running, scaling, backend), name="warm-up", daemon=True)
        thread.start()
        _running = thread


def wait() -> None:
    """Wait for what :func:`start` has begun, so that nothing is done twice."""
    if _running is not None:
        _running.join()


def _warm_up(before: threading.Thread | None, scaling: ScalingConfig, backend: BackendConfig) -> None:
    if before is not None:
        before.join()  # so that waiting for this one is waiting for both
    # Whatever it is, the attempt meets it again, and raises it.
    with contextlib.suppress(TrainlibError):
        cluster.connect(scaling.runtime_env)
        # With several nodes it is not known yet where the gang will be. Workers with GPUs, or with actors of their own, start inside
        # their bundle.
        nodes = [node for node in ray.nodes() if node["Alive"]]
        inside = scaling.use_gpu or backend.starts_actors
        if len(nodes) == 1 and not inside and never_fits(fitted_to_cluster(scaling)) is None:
            kind = kind_of(scaling, backend, nodes[0]["NodeID"])
            pool_of(kind).warm(kind, scaling.num_workers)
