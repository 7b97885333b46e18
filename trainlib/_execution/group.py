"""The workers of one attempt, by rank. This is what a backend sees."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import trainlib
from trainlib._execution.backend import BackendConfig
from trainlib._execution.gpus import CUDA_VISIBLE_DEVICES, shared_by_node
from trainlib._execution.pool.choosing import kind_of, pool_of
from trainlib._execution.pool.idle import Kind
from trainlib._execution.ranks import Place, rank_by_node
from trainlib._execution.waiting import gather
from trainlib._execution.worker import WorkerFacts, pickled
from trainlib.config import ScalingConfig
from trainlib.errors import WorkerVersionError

# A worker that has not come up by then never will: importing a framework takes seconds.
START_TIMEOUT_S = 180.0
# Packages that pip installs first may take this much longer: then Ray itself gives up.
INSTALL_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Member:
    """One worker of the gang."""

    actor: Any
    kind: Kind
    place: Place
    facts: WorkerFacts


class WorkerGroup:
    """Workers in the order of their ranks.

    Example:
        A backend's ``on_start`` calls a function on all of them, or on one::

            addresses = worker_group.execute(get_node_ip)
            port = worker_group.execute_single(0, find_free_port)
    """

    def __init__(self, members: Sequence[Member], reusable: bool) -> None:
        self.members = list(members)
        self._reusable = reusable

    @classmethod
    def start(
        cls, scaling: ScalingConfig, backend: BackendConfig, group: PlacementGroup, nodes: Sequence[str]
    ) -> WorkerGroup:
        """Workers for a gang whose room is reserved: from the pool, or new ones."""
        # Ray tells a worker its GPUs only when it is started with them, so such a worker has to stand
        # inside its bundle, and is not handed on. So has one that starts actors, which are to be inside the gang's bundles.
        gpus = scaling.worker_resources.get("GPU", 0.0)
        inside = bool(gpus) or backend.starts_actors
        kinds = [kind_of(scaling, backend, node) for node in nodes]
        actors: list[Any] = []
        try:
            for index, kind in enumerate(kinds):
                if inside:
                    bundle = PlacementGroupSchedulingStrategy(
                        group,
                        placement_group_bundle_index=index,
                        placement_group_capture_child_tasks=backend.starts_actors,
                    )
                    actors.append(pool_of(kind).start(kind, num_gpus=gpus, scheduling_strategy=bundle))
                else:
                    actors.append(pool_of(kind).checkout(kind))
            facts = [_facts(actors, kinds, index, pooled=not inside) for index in range(len(actors))]
            _require_one_version(facts)
        except BaseException:
            for actor, kind in zip(actors, kinds, strict=False):
                pool_of(kind).end(kind, [actor])
            raise
        members = [
            Member(actors[index], kinds[index], place, facts[index])
            for index, place in rank_by_node([fact.node_id for fact in facts], [fact.gpus for fact in facts])
        ]
        return cls(members, reusable=not inside)

    def __len__(self) -> int:
        return len(self.members)

    def execute_async(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function`` in every worker; gives Ray's references to the values."""
        call = pickled(function, *args)
        return [member.actor.execute.remote(call) for member in self.members]

    def execute(self, function: Callable[..., Any], *args: Any, timeout: float | None = None) -> list[Any]:
        """Call ``function`` in every worker; gives the values by rank, or TimeoutError."""
        return gather(self.execute_async(function, *args), timeout=timeout)

    def execute_single_async(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function`` in one worker; gives Ray's reference to the value."""
        return self.members[rank].actor.execute.remote(pickled(function, *args))

    def execute_single(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function`` in one worker and return its value."""
        return gather([self.execute_single_async(rank, function, *args)])[0]

    def share_gpus(self) -> None:
        """Let workers of a node see each other's GPUs. To be called before they use any."""
        shared = shared_by_node(
            [member.facts.node_id for member in self.members], [member.facts.gpus for member in self.members]
        )
        gather(
            [
                self.execute_single_async(rank, _see_gpus, ",".join(seen))
                for rank, seen in enumerate(shared)
                if len(seen) > len(self.members[rank].facts.gpus)
            ]
        )

    def release(self) -> None:
        """Hand the workers on: their training functions have all returned."""
        if not self._reusable:
            self.kill()
            return
        for kind, actors in self._by_kind().items():
            pool_of(kind).give_back(kind, actors)

    def kill(self, *, keep_rank_zero: bool = False) -> None:
        """End the workers, whatever they are doing. Does nothing to those that have ended."""
        ending = self.members[1:] if keep_rank_zero else self.members
        self.members = self.members[:1] if keep_rank_zero else []
        for member in ending:
            pool_of(member.kind).end(member.kind, [member.actor])

    def warm_spares(self) -> None:
        """Start as many workers again in the background, for a retry, without slowing this gang down."""
        if self._reusable:
            for kind, actors in self._by_kind().items():
                pool_of(kind).warm(kind, len(actors), yielding=True)

    def _by_kind(self) -> dict[Kind, list[Any]]:
        by_kind: dict[Kind, list[Any]] = {}
        for member in self.members:
            by_kind.setdefault(member.kind, []).append(member.actor)
        return by_kind


def _facts(actors: list[Any], kinds: list[Kind], index: int, pooled: bool) -> WorkerFacts:
    """Where a worker is, once it is up. One that died while it was idle is replaced: that is no failure."""
    timeout = START_TIMEOUT_S + (INSTALL_TIMEOUT_S if '"pip"' in kinds[index].runtime_env else 0.0)
    try:
        return gather([actors[index].facts.remote()], timeout=timeout)[0]
    except ray.exceptions.RayActorError as error:
        if not pooled or error.actor_init_failed:
            raise
    pool = pool_of(kinds[index])
    pool.end(kinds[index], [actors[index]])
    actors[index] = pool.start(kinds[index])
    return gather([actors[index].facts.remote()], timeout=timeout)[0]


def _see_gpus(ids: str) -> None:
    os.environ[CUDA_VISIBLE_DEVICES] = ids


def _require_one_version(facts: Sequence[WorkerFacts]) -> None:
    own = trainlib.__version__
    for each in facts:
        if each.version != own:
            raise WorkerVersionError(
                f"node {each.hostname} ({each.node_ip}) has trainlib {each.version or 'of an older version'}, and this process "
                f"has {own}. Install trainlib {own} there, for the Python that Ray runs in."
            )
