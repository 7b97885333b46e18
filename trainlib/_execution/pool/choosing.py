"""Where a gang's workers come from: the pool of this process, or that of the platform whose Ray it has joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trainlib._execution import liveness, remote_env
from trainlib._execution.backend import BackendConfig
from trainlib._execution.pool.idle import Kind
from trainlib._execution.pool.joined_pool import JoinedPool
from trainlib._execution.pool.own_pool import pool
from trainlib._execution.pool.script import packages_stamp
from trainlib.config import ScalingConfig

__all__ = ["Pool", "kind_of", "pool_of"]


class Pool(Protocol):
    """Gives workers, and takes them back."""

    def checkout(self, kind: Kind) -> Any:
        """An idle worker of that kind, or a new one."""

    def start(self, kind: Kind, **placement: Any) -> Any:
        """A new worker, even if one is idle."""

    def warm(self, kind: Kind, count: int, *, yielding: bool = False) -> None:
        """Have that many idle workers of a kind soon."""

    def give_back(self, kind: Kind, actors: Sequence[Any]) -> None:
        """Reset workers whose training functions have returned, and keep those that can be reset."""

    def end(self, kind: Kind, actors: Sequence[Any]) -> None:
        """End workers, whatever they are doing."""


_joined = JoinedPool()


def kind_of(scaling: ScalingConfig, backend: BackendConfig, node_id: str) -> Kind:
    """The kind of worker that a gang needs on a node."""
    environment, asked = _joined.environment(), scaling.runtime_env
    return Kind(
        node_id=node_id,
        threads=max(1, int(scaling.worker_resources.get("CPU", 1))),
        state_module=backend.state_module,
        session=liveness.session(),
        runtime_env=remote_env.for_worker(asked, node_id),
        env_vars=tuple(sorted((asked.env_vars or {}).items())) if asked is not None else (),
        environment=environment,
        packages=packages_stamp() if environment is not None else 0,
    )


def pool_of(kind: Kind) -> Pool:
    """The pool that has workers of that kind."""
    return pool if kind.environment is None else _joined
