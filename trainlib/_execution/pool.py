"""Warm workers: processes with their framework imported, ready for the next attempt, trial or ``fit()``.

Starting a worker takes seconds, using one takes milliseconds. A worker whose training function returned is reset and
kept for a while. One that failed, or that cannot be reset, is not. Idle workers reserve no resources, and end with the
process that started them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainlib._execution import liveness
from trainlib._execution.waiting import gather
from trainlib._execution.worker import Worker
from trainlib.errors import RayLostError


def idle_seconds() -> float:
    """How long an idle worker is kept: ``TRAINLIB_WORKER_IDLE_S``, 60 by default; 0 keeps none."""
    return float(os.environ.get("TRAINLIB_WORKER_IDLE_S", "60"))


@dataclass(frozen=True)
class Kind:
    """Workers of one kind are interchangeable."""

    node_id: str
    threads: int
    state_module: str | None
    session: str | None
    """The connection to Ray that they belong to."""


@dataclass
class Idle:
    actor: Any
    since: float


class WorkerPool:
    """The idle workers of this process. Thread-safe: trials use it side by side."""

    def __init__(self) -> None:
        self._idle: dict[Kind, list[Idle]] = {}
        self._busy: Counter[Kind] = Counter()
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    def checkout(self, kind: Kind) -> Any:
        """An idle worker of that kind, or a new one. Return it with :meth:`give_back` or :meth:`end`."""
        with self._lock:
            self._busy[kind] += 1
            idle = self._idle.get(kind)
            # The one that came last has just worked; another may still be importing its framework.
            return idle.pop().actor if idle else create(kind)

    def start(self, kind: Kind, **placement: Any) -> Any:
        """A new worker, even if one is idle. Return it like one from :meth:`checkout`."""
        with self._lock:
            self._busy[kind] += 1
            return create(kind, **placement)

    def warm(self, kind: Kind, count: int, *, yielding: bool = False) -> None:
        """Start as many workers in the background as are missing to have ``count`` idle ones of that kind.

        Args:
            kind: The kind of worker.
            count: How many are wanted.
            yielding: Whether they import their framework only with processor time that nobody else wants.
        """
        if idle_seconds() > 0:
            with self._lock:
                missing = count - len(self._idle.get(kind, ()))
                self._keep(kind, [create(kind, yielding=yielding) for _ in range(missing)])

    def give_back(self, kind: Kind, actors: Sequence[Any]) -> None:
        """Reset workers whose training functions have returned, and keep them. Those that cannot be reset are ended."""
        clean: list[Any] = []
        try:
            if idle_seconds() > 0:
                problems = gather([actor.reset.remote() for actor in actors], timeout=5.0)
                clean = [actor for actor, problem in zip(actors, problems, strict=True) if problem is None]
        except (ray.exceptions.RayError, RayLostError, TimeoutError):
            pass  # then none of them is known to be clean
        except BaseException:
            self.end(kind, actors)
            raise
        self.end(kind, [actor for actor in actors if actor not in clean])
        with self._lock:
            self._busy[kind] -= len(clean)
            self._keep(kind, clean[::-1])  # so that each rank gets the same worker the next time

    def end(self, kind: Kind, actors: Sequence[Any]) -> None:
        """End workers that were checked out, whatever they are doing."""
        if liveness.answers(kind.session):  # otherwise their Ray is gone, and they with it
            for actor in actors:
                ray.kill(actor)
        with self._lock:
            self._busy[kind] -= len(actors)

    def clear(self) -> None:
        """End all idle workers now."""
        with self._lock:
            self._forget_other_sessions()
            for idle in self._idle.values():
                for worker in idle:
                    ray.kill(worker.actor)
            self._idle.clear()

    def _keep(self, kind: Kind, actors: Sequence[Any]) -> None:
        self._idle.setdefault(kind, []).extend(Idle(actor, time.monotonic()) for actor in actors)
        if actors and self._sweeper is None:
            self._sweeper = threading.Thread(target=self._sweep, name="worker-pool", daemon=True)
            self._sweeper.start()

    def _sweep(self) -> None:
        """End workers that have been idle for long enough, until none is left."""
        while True:
            time.sleep(1.0)
            with self._lock:
                self._forget_other_sessions()
                for kind in list(self._idle):
                    self._expire(kind, time.monotonic())
                if not self._idle:
                    self._sweeper = None
                    return

    def _forget_other_sessions(self) -> None:
        """Let go of workers of a Ray that was shut down: they are gone, and Ray must not be asked about them."""
        session = liveness.session()
        for kind in [kind for kind in self._idle if kind.session != session]:
            del self._idle[kind]

    def _expire(self, kind: Kind, now: float) -> None:
        idle = self._idle[kind]
        for worker in list(idle):
            if self._busy[kind] > 0:
                worker.since = now  # a training of that kind runs, and may need it
            elif now - worker.since > idle_seconds():
                idle.remove(worker)
                ray.kill(worker.actor)
        if not idle:
            del self._idle[kind]


def create(kind: Kind, *, yielding: bool = False, **placement: Any) -> Any:
    """A new worker; ``placement`` overrides where it is started, and with which resources."""
    options = {"scheduling_strategy": NodeAffinitySchedulingStrategy(kind.node_id, soft=False), **placement}
    return Worker.options(**options).remote(  # type: ignore[attr-defined]
        threads=kind.threads, state_module=kind.state_module, yielding=yielding
    )


pool = WorkerPool()
