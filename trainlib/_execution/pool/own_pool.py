"""Warm workers: processes with their framework imported, ready for the next attempt, trial or ``fit()``.

Starting a worker takes seconds, using one takes milliseconds. A worker whose training function returned is reset and
kept for a while. One that failed, or that cannot be reset, is not. Idle workers reserve no resources, and end with the
process that started them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainlib._execution import liveness
from trainlib._execution.pool.free_memory import free_share
from trainlib._execution.pool.idle import IdleWorkers, Kind, Limits
from trainlib._execution.waiting import gather
from trainlib._execution.worker import Worker
from trainlib.errors import RayLostError

_SWEEP_S = 1.0
_RESET_S = 5.0


def idle_seconds(default: float = 60.0) -> float:
    """How long an idle worker is kept: ``TRAINLIB_WORKER_IDLE_S``; 0 keeps none."""
    return float(os.environ.get("TRAINLIB_WORKER_IDLE_S", default))


class WorkerPool:
    """The idle workers of this process. Thread-safe: trials use it side by side."""

    def __init__(self, limits: Callable[[], Limits] = lambda: Limits(idle_seconds())) -> None:
        self._limits = limits
        self._idle = IdleWorkers()
        self._busy: Counter[Kind] = Counter()
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    def checkout(self, kind: Kind, script: str | None = None) -> Any:
        """An idle worker of that kind, or a new one. Return it with :meth:`give_back` or :meth:`end`."""
        with self._lock:
            self._busy[kind] += 1
            return self._idle.take(kind, script) or create(kind)

    def start(self, kind: Kind, **placement: Any) -> Any:
        """A new worker, even if one is idle. Return it like one from :meth:`checkout`."""
        with self._lock:
            self._busy[kind] += 1
            return create(kind, **placement)

    def warm(self, kind: Kind, count: int, *, yielding: bool = False, script: str | None = None) -> None:
        """Start as many workers in the background as are missing to have ``count`` idle ones of that kind.

        Args:
            kind: The kind of worker.
            count: How many are wanted.
            yielding: Whether they import their framework only with processor time that nobody else wants.
            script: Who wants them.
        """
        if self._limits().idle_s > 0:
            with self._lock:
                missing = count - self._idle.count(kind, script)
                self._keep(kind, [create(kind, yielding=yielding) for _ in range(missing)])

    def give_back(self, kind: Kind, actors: Sequence[Any]) -> None:
        """Reset workers whose training functions have returned, and keep them. Those that cannot be reset are ended."""
        try:
            clean = reset_workers(actors) if self._limits().idle_s > 0 else []
        except BaseException:
            self.end(kind, actors)
            raise
        self.keep(kind, clean)
        self.end(kind, [actor for actor in actors if actor not in clean])

    def keep(self, kind: Kind, actors: Sequence[Any], only_for: str | None = None) -> None:
        """Keep workers that were checked out and have been reset."""
        with self._lock:
            self._busy[kind] -= len(actors)
            self._keep(kind, actors[::-1], only_for)  # so that each rank gets the same worker the next time

    def end(self, kind: Kind, actors: Sequence[Any]) -> None:
        """End workers that were checked out, whatever they are doing."""
        if actors and liveness.answers(kind.session):  # otherwise their Ray is gone, and they with it
            _kill(actors)
        with self._lock:
            self._busy[kind] -= len(actors)

    @property
    def idle_actors(self) -> list[Any]:
        """Those that stand by."""
        with self._lock:
            return self._idle.actors

    def hand_on(self, script: str) -> None:
        """Let others have the idle workers that a script has used, which has ended. Where it has left something behind,
        a new worker takes the place of the old one."""
        with self._lock:
            used = self._idle.take_only_for(script)
        for kind, actors in used.items():
            clean = _like_new(actors)
            ended = [actor for actor in actors if actor not in clean]
            _kill(ended)
            with self._lock:
                try:
                    self._keep(kind, [create(kind, yielding=True) for _ in ended])
                finally:
                    self._keep(kind, clean)  # after the new ones, so that they are taken first

    def clear(self) -> None:
        """End all idle workers now."""
        with self._lock:
            self._idle.forget_other_sessions(liveness.session())
            _kill(self._idle.take_all())

    def _keep(self, kind: Kind, actors: Sequence[Any], only_for: str | None = None) -> None:
        self._idle.keep(kind, actors, time.monotonic(), only_for)
        if actors and self._sweeper is None:
            self._sweeper = threading.Thread(target=self._sweep, name="worker-pool", daemon=True)
            self._sweeper.start()

    def _sweep(self) -> None:
        """End workers that are not to be kept any longer, until none is left."""
        while True:
            time.sleep(_SWEEP_S)
            limits = self._limits()
            lacks_memory = limits.min_free_memory > 0 and free_share() < limits.min_free_memory
            with self._lock:
                self._idle.forget_other_sessions(liveness.session())
                if lacks_memory:
                    _kill(self._idle.take_all())
                busy = [kind for kind, count in self._busy.items() if count > 0]
                _kill(self._idle.take_expired(time.monotonic(), limits, busy))
                if not len(self._idle):
                    self._sweeper = None
                    return


def create(kind: Kind, *, yielding: bool = False, **placement: Any) -> Any:
    """A new worker; ``placement`` overrides where it is started, and with which resources."""
    options = {"scheduling_strategy": NodeAffinitySchedulingStrategy(kind.node_id, soft=False), **placement}
    if kind.runtime_env:
        options["runtime_env"] = json.loads(kind.runtime_env)
    return Worker.options(**options).remote(  # type: ignore[attr-defined]
        threads=kind.threads,
        state_module=kind.state_module,
        yielding=yielding,
        environment=kind.environment,
        env_vars=kind.env_vars,
    )


def reset_workers(actors: Sequence[Any]) -> list[Any]:
    """Reset workers whose training functions have returned. Gives those that are clean now."""
    try:
        problems = gather([actor.reset.remote() for actor in actors], timeout=_RESET_S)
    except (ray.exceptions.RayError, RayLostError, TimeoutError):
        return []  # none of them is known to be clean
    return [actor for actor, problem in zip(actors, problems, strict=True) if problem is None]


def _like_new(actors: Sequence[Any]) -> list[Any]:
    """Those workers in which the script that has used them has left nothing behind."""
    try:
        left = gather([actor.left_behind.remote() for actor in actors], timeout=_RESET_S)
    except (ray.exceptions.RayError, RayLostError, TimeoutError):
        return []
    return [actor for actor, found in zip(actors, left, strict=True) if not found]


def _kill(actors: Sequence[Any]) -> None:
    for actor in actors:
        ray.kill(actor)


pool = WorkerPool()
