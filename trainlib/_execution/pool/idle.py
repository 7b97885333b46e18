"""Which idle workers are kept, for whom, and for how long. Pure: nobody is started or ended here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Idle", "IdleWorkers", "Kind", "Limits"]

# Those that were started for a gang, or come from one, may be wanted in a moment, however many they are.
_ABOUT_TO_BE_USED_S = 15.0


@dataclass(frozen=True)
class Kind:
    """Workers of one kind are interchangeable."""

    node_id: str
    threads: int
    state_module: str | None
    session: str | None
    """The connection to Ray that they belong to."""
    environment: tuple[tuple[str, str], ...] | None = field(default=None, repr=False)
    """The environment variables that they are started with, on a platform; None where Ray hands on those of the script.
    Libraries read them when they are imported, and they may be secrets: a script with others gets workers of its own."""
    runtime_env: str = field(default="", repr=False)
    """What they get that their node does not have, as Ray takes it, in JSON."""
    env_vars: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The variables of their ``runtime_env``. They may be secrets."""
    packages: int = 0
    """Changes whenever a package is installed: a worker from before may have imported the old one."""


@dataclass(frozen=True)
class Limits:
    """What may be kept."""

    idle_s: float
    """How long a worker may be idle; with 0, none is kept."""
    most: int | None = None
    """How many may be idle for more than a moment; None for any number."""
    min_free_memory: float = 0.0
    """The share of the machine's memory below which no idle worker is kept."""


@dataclass
class Idle:
    """An idle worker."""

    actor: Any
    since: float
    only_for: str | None = None
    """The script that has used it, as long as nobody else may have it: it may have loaded libraries for that script, and their
    state cannot be reset."""


class IdleWorkers:
    """The idle workers, by kind.

    Example:
        >>> kind = Kind("node", threads=1, state_module=None, session=None)
        >>> idle = IdleWorkers()
        >>> idle.keep(kind, ["a worker"], now=0.0)
        >>> idle.take(kind)
        'a worker'
        >>> idle.take(kind) is None
        True
    """

    def __init__(self) -> None:
        self._workers: dict[Kind, list[Idle]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._workers.values()))

    @property
    def actors(self) -> list[Any]:
        """All of them."""
        return [worker.actor for workers in self._workers.values() for worker in workers]

    def count(self, kind: Kind, script: str | None = None) -> int:
        """How many of a kind a script can have."""
        return sum(worker.only_for in (None, script) for worker in self._workers.get(kind, ()))

    def keep(self, kind: Kind, actors: Sequence[Any], now: float, only_for: str | None = None) -> None:
        """Keep workers, from now on."""
        self._workers.setdefault(kind, []).extend(Idle(actor, now, only_for) for actor in actors)

    def take(self, kind: Kind, script: str | None = None) -> Any:
        """One of a kind that a script can have, which is then no longer idle; None if there is none."""
        # The one that came last has just worked; another may still be importing its framework.
        for worker in reversed(self._workers.get(kind, [])):
            if worker.only_for in (None, script):
                self._remove(kind, worker)
                return worker.actor
        return None

    def take_expired(self, now: float, limits: Limits, busy: Collection[Kind] = ()) -> list[Any]:
        """Those that were idle for too long, or are too many. Of the ``busy`` kinds none expires: a training of such a
        kind runs, and may need it."""
        taken = []
        for kind, workers in list(self._workers.items()):
            for worker in list(workers):
                if kind in busy:
                    worker.since = now
                elif now - worker.since > limits.idle_s:
                    taken.append(self._remove(kind, worker))
        return taken + self._take_surplus(now, limits.most)

    def take_only_for(self, script: str) -> dict[Kind, list[Any]]:
        """Those that nobody but this script can have."""
        found: dict[Kind, list[Any]] = {}
        for kind, workers in list(self._workers.items()):
            for worker in [worker for worker in workers if worker.only_for == script]:
                found.setdefault(kind, []).append(self._remove(kind, worker))
        return found

    def take_all(self) -> list[Any]:
        """All of them."""
        actors = self.actors
        self._workers.clear()
        return actors

    def forget_other_sessions(self, session: str | None) -> None:
        """Let go of workers of a Ray that was shut down: they are gone, and Ray must not be asked about them."""
        for kind in [kind for kind in self._workers if kind.session != session]:
            del self._workers[kind]

    def _take_surplus(self, now: float, most: int | None) -> list[Any]:
        """Those that have been idle for longest, if there are too many."""
        if most is None or len(self) <= most:
            return []
        settled = [
            (worker.since, kind, worker)
            for kind, workers in self._workers.items()
            for worker in workers
            if now - worker.since > _ABOUT_TO_BE_USED_S
        ]
        settled.sort(key=lambda one: one[0])
        return [self._remove(kind, worker) for _, kind, worker in settled[: len(self) - most]]

    def _remove(self, kind: Kind, worker: Idle) -> Any:
        workers = self._workers[kind]
        workers.remove(worker)
        if not workers:
            del self._workers[kind]
        return worker.actor
