"""Warm workers: processes with their framework imported, ready for the next attempt, trial or ``fit()``.

Starting a worker costs seconds, using one milliseconds. A worker whose training function returned is
reset and kept for a while; one that failed, or that the reset finds changed, is not. Idle workers
reserve nothing and end with the process that made them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainlib.execution.waiting import gather
from trainlib.execution.worker import Worker


def idle_seconds() -> float:
    """How long an idle worker is kept: ``TRAINLIB_WORKER_IDLE_S``, 60 by default; 0 keeps none."""
    return float(os.environ.get("TRAINLIB_WORKER_IDLE_S", "60"))


@dataclass(frozen=True)
class Kind:
    """Workers of one kind can stand in for each other."""

    node_id: str
    threads: int
    state_module: str | None
    cluster: str
    """A worker of another Ray session is of no use."""


@dataclass
class Idle:
    actor: Any
    since: float


class WorkerPool:
    """The idle workers of this process. Thread-safe: trials take from it side by side."""

    def __init__(self) -> None:
        self._idle: dict[Kind, list[Idle]] = {}
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    def take(self, kind: Kind) -> Any:
        """An idle worker of that kind, or a new one."""
        with self._lock:
            idle = self._idle.get(kind)
            if idle:
                return idle.pop().actor
        return create(kind)

    def warm(self, kind: Kind, count: int) -> None:
        """Have at least ``count`` workers of that kind; returns at once, they start behind."""
        with self._lock:
            missing = count - len(self._idle.get(kind, ()))
        self._keep(kind, [create(kind) for _ in range(missing)])

    def give_back(self, kind: Kind, actors: Sequence[Any]) -> None:
        """Take workers back whose training functions have returned. Those that cannot be reset are ended."""
        clean = []
        try:
            if idle_seconds() > 0:
                problems = gather([actor.reset.remote() for actor in actors], timeout=5.0)
                clean = [actor for actor, problem in zip(actors, problems, strict=True) if problem is None]
        except (ray.exceptions.RayError, TimeoutError):
            clean = []
        for actor in actors:
            if actor not in clean:
                ray.kill(actor)
        self._keep(kind, clean)

    def _keep(self, kind: Kind, actors: Sequence[Any]) -> None:
        with self._lock:
            self._idle.setdefault(kind, []).extend(Idle(actor, time.monotonic()) for actor in actors)
            if actors and self._sweeper is None:
                self._sweeper = threading.Thread(target=self._sweep, name="worker-pool", daemon=True)
                self._sweeper.start()

    def _sweep(self) -> None:
        """End workers that have been idle for long enough, until none is left."""
        while True:
            time.sleep(1.0)
            with self._lock:
                now = time.monotonic()
                alive = ray.is_initialized()
                for kind, idle in list(self._idle.items()):
                    for worker in [w for w in idle if now - w.since > idle_seconds() or not alive]:
                        idle.remove(worker)
                        if alive:
                            ray.kill(worker.actor)
                    if not idle:
                        del self._idle[kind]
                if not self._idle:
                    self._sweeper = None
                    return

    def clear(self) -> None:
        """End all idle workers now."""
        with self._lock:
            for idle in self._idle.values():
                for worker in idle:
                    ray.kill(worker.actor)
            self._idle.clear()


def create(kind: Kind, **placement: Any) -> Any:
    """A new worker; ``placement`` overrides where and with what it is started."""
    options = {"scheduling_strategy": NodeAffinitySchedulingStrategy(kind.node_id, soft=False), **placement}
    return Worker.options(**options).remote(  # type: ignore[attr-defined]
        threads=kind.threads, state_module=kind.state_module, environment={}
    )


pool = WorkerPool()
