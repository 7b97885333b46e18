"""The warm workers of a platform: one pool for all scripts that have joined its Ray, from script to script.

It is an actor of the process that holds the platform's Ray (:mod:`~trainlib._execution.head`), and the workers are its own: they
do not end with a script. Those that a script has checked out when it ends, however it ends, are ended.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray

from trainlib._execution import liveness
from trainlib._execution.pool.idle import Kind, Limits
from trainlib._execution.pool.own_pool import WorkerPool, idle_seconds

__all__ = ["NAME", "NAMESPACE", "SharedPool", "limits_of_platform", "serve"]

NAME = "trainlib-workers"
NAMESPACE = "trainlib"

# Somebody edits a script, thinks, and starts it again: that takes minutes.
_IDLE_S = 600.0
_MIN_FREE_MEMORY = 0.1
_LOOK_S = 0.5


def limits_of_platform(cpus: int) -> Limits:
    """What a platform keeps: one idle worker per CPU of its Ray, for ``TRAINLIB_WORKER_IDLE_S`` (600 by default).

    None is kept while less than a tenth of the memory is free; ``TRAINLIB_WORKER_FREE_MEMORY`` is another share.
    """
    free = float(os.environ.get("TRAINLIB_WORKER_FREE_MEMORY", _MIN_FREE_MEMORY))
    return Limits(idle_seconds(_IDLE_S), most=cpus, min_free_memory=free)


def serve(limits: Limits) -> Any:
    """Start the pool in the Ray that this process is connected to. It lives as long as what is returned."""
    actor: Any = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=1)(SharedPool)
    served = actor.options(name=NAME, namespace=NAMESPACE).remote(limits)
    ray.get(served.ping.remote())
    return served


@dataclass(frozen=True)
class Lease:
    """A worker that a script has checked out."""

    kind: Kind
    actor: Any


class SharedPool:
    """The pool. A script is known by the id of its job in Ray, which ends when it disconnects or dies."""

    def __init__(self, limits: Limits) -> None:
        self._pool = WorkerPool(lambda: limits)
        self._session = liveness.session()
        self._leases: dict[str, list[Lease]] = {}
        """By script. A script without any may still have idle workers that nobody else can have."""
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, name="script-watch", daemon=True).start()

    def ping(self) -> None:
        """Answers once it is up."""

    def checkout(self, script: str, kind: Kind) -> Any:
        """An idle worker of that kind, or a new one."""
        return self._lease(script, kind, self._pool.checkout(self._own(kind), script))

    def start(self, script: str, kind: Kind) -> Any:
        """A new worker."""
        return self._lease(script, kind, self._pool.start(self._own(kind)))

    def warm(self, script: str, kind: Kind, count: int, yielding: bool) -> None:
        """Have that many idle workers of a kind soon."""
        self._pool.warm(self._own(kind), count, yielding=yielding, script=script)

    def keep(self, script: str, actors: Sequence[Any]) -> None:
        """Take workers back that have been reset. As long as the script lives, nobody else gets them."""
        for lease in reversed(self._returned(script, actors)):  # so that each rank gets the same worker the next time
            self._pool.keep(lease.kind, [lease.actor], only_for=script)

    def end(self, script: str, actors: Sequence[Any]) -> None:
        """End workers that a script has checked out. Those that it has started by itself are not known here."""
        self._end(self._returned(script, actors))

    def clear(self) -> None:
        """End all idle workers now."""
        self._pool.clear()

    def _own(self, kind: Kind) -> Kind:
        return replace(kind, session=self._session)

    def _lease(self, script: str, kind: Kind, actor: Any) -> Any:
        with self._lock:
            self._leases.setdefault(script, []).append(Lease(self._own(kind), actor))
        return actor

    def _returned(self, script: str, actors: Sequence[Any]) -> list[Lease]:
        """The leases of these workers, which end."""
        with self._lock:
            held = self._leases.get(script, [])
            returned = [lease for lease in held if lease.actor in actors]
            self._leases[script] = [lease for lease in held if lease.actor not in actors]
            return returned

    def _end(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            ray.kill(lease.actor)
            self._pool.end(lease.kind, [lease.actor])

    def _watch(self) -> None:
        """End what scripts that have ended still had."""
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                scripts = set(self._leases)
            try:
                ended = scripts - _connected_scripts() if scripts else set()
            except ray.exceptions.RpcError:
                continue  # Ray's control service is too busy to answer, or ends
            for script in ended:
                with self._lock:
                    left = self._leases.pop(script)
                self._end(left)
                self._pool.hand_on(script)


def _connected_scripts() -> set[str]:
    worker: Any = ray._private.worker.global_worker
    jobs = worker.gcs_client.get_all_job_info(skip_submission_job_info_field=True, skip_is_running_tasks_field=True)
    return {job_id.hex() for job_id, job in jobs.items() if not job.is_dead}
