"""A script's side of the platform's pool of workers."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import ray

from trainlib._execution import liveness
from trainlib._execution.pool.idle import Kind
from trainlib._execution.pool.own_pool import create, idle_seconds, reset_workers
from trainlib._execution.pool.script import Script, startup_environment
from trainlib._execution.pool.shared_pool import NAME, NAMESPACE
from trainlib._execution.waiting import gather
from trainlib.errors import RayLostError

__all__ = ["JoinedPool"]

# It starts an actor at most, which does not wait for the actor's process.
_ANSWER_S = 30.0


class JoinedPool:
    """The workers of the platform whose Ray this process is connected to. Thread-safe, as the pool of one process is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: str | None = None
        self._host: Any = None
        self._environment: tuple[tuple[str, str], ...] = ()

    def environment(self) -> tuple[tuple[str, str], ...] | None:
        """What the workers of this script are started with; None if it is not connected to the Ray of a platform.

        These are the variables at the time of connecting: a Ray of its own would have been started with them, too.
        """
        with self._lock:
            if self._session != (session := liveness.session()):
                self._host = _find() if session is not None else None
                self._environment = startup_environment()
                self._session = session
            return self._environment if self._host is not None else None

    def checkout(self, kind: Kind) -> Any:
        """An idle worker of that kind, or a new one. Return it with :meth:`give_back` or :meth:`end`."""
        return _entered(self._ask("checkout", kind), kind)

    def start(self, kind: Kind, **placement: Any) -> Any:
        """A new worker, even if one is idle. Return it like one from :meth:`checkout`."""
        # Where it is to be belongs to this script, and ends with it: so must the worker.
        return _entered(create(kind, **placement) if placement else self._ask("start", kind), kind)

    def warm(self, kind: Kind, count: int, *, yielding: bool = False) -> None:
        """Start as many workers in the background as are missing to have ``count`` idle ones of that kind."""
        if idle_seconds() > 0:
            self._host.warm.remote(_script(), kind, count, yielding)

    def give_back(self, kind: Kind, actors: Sequence[Any]) -> None:
        """Reset workers whose training functions have returned, and keep them. Those that cannot be reset are ended."""
        try:
            clean = reset_workers(actors) if idle_seconds() > 0 else []
            if clean:
                self._ask("keep", clean)
        except (ray.exceptions.RayError, RayLostError, TimeoutError):
            clean = []  # the platform ends, or starts its pool again
        except BaseException:
            self.end(kind, actors)
            raise
        self.end(kind, [actor for actor in actors if actor not in clean])

    def end(self, kind: Kind, actors: Sequence[Any]) -> None:
        """End workers that were checked out, whatever they are doing."""
        if actors and liveness.answers(kind.session):  # otherwise their Ray is gone, and they with it
            for actor in actors:
                ray.kill(actor)
            self._host.end.remote(_script(), list(actors))

    def clear(self) -> None:
        """End all idle workers of the platform now."""
        if self.environment() is not None:
            gather([self._host.clear.remote()], timeout=_ANSWER_S)

    def _ask(self, method: str, *args: Any) -> Any:
        return gather([getattr(self._host, method).remote(_script(), *args)], timeout=_ANSWER_S)[0]


def _find() -> Any:
    try:
        return ray.get_actor(NAME, namespace=NAMESPACE)
    except ValueError:  # there is none
        return None


def _script() -> str:
    return ray.get_runtime_context().get_job_id()


def _entered(actor: Any, kind: Kind) -> Any:
    script = Script.this()
    actor.enter.remote(
        script.with_code_from_elsewhere() if "working_dir" in json.loads(kind.runtime_env or "{}") else script
    )
    return actor
