"""Collects the stacks of all ranks."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib._execution.on_node import call_on_node
from trainlib._execution.stacks.dump import dump
from trainlib._execution.stacks.frames import Frame, ProcessStacks
from trainlib._execution.stacks.report import RankStacks

if TYPE_CHECKING:
    from trainlib._execution.group import Member
    from trainlib._execution.worker import WorkerFacts

# How long a worker may take that lets Python run, and then its node, which may have to start a process first.
_ANSWER_S = 1.0
_NODE_S = 6.0
# A node starts a process for whoever has just joined the cluster, and has to import trainlib there.
_STRANGE_NODE_S = 30.0


def collect_stacks(
    members: Sequence[Member], raised: Mapping[int, tuple[Frame, ...]] | None = None
) -> list[RankStacks]:
    """What every rank is doing. Takes milliseconds, or a few seconds if one does not answer.

    Args:
        members: The workers, by rank.
        raised: The calls that led to what training functions have raised, by rank.
    """
    found = dict(enumerate(_finished([member.actor.stacks.remote().future() for member in members], _ANSWER_S)))
    silent = [rank for rank, stacks in found.items() if stacks is None]
    found.update(
        zip(silent, _finished([call_on_node(members[rank].facts, dump) for rank in silent], _NODE_S), strict=True)
    )
    return [
        RankStacks(
            rank,
            member.facts.hostname,
            member.facts.pid,
            found[rank] or ProcessStacks(problem="neither its process nor its node answers"),
            (raised or {}).get(rank, ()),
        )
        for rank, member in enumerate(members)
    ]


def collect_from_nodes(workers: Sequence[WorkerFacts]) -> list[RankStacks]:
    """What every rank of a training is doing that another process coordinates: their nodes read it from outside."""
    found = _finished([call_on_node(each, dump) for each in workers], _STRANGE_NODE_S)
    return [
        RankStacks(rank, each.hostname, each.pid, stacks or ProcessStacks(problem="its node does not answer"))
        for rank, (each, stacks) in enumerate(zip(workers, found, strict=True))
    ]


def _finished(futures: Sequence[concurrent.futures.Future[Any]], timeout: float) -> list[ProcessStacks | None]:
    """What is there in time; None for what is not."""
    concurrent.futures.wait(futures, timeout=timeout)
    return [_found(future) if future.done() else None for future in futures]


def _found(future: concurrent.futures.Future[Any]) -> ProcessStacks:
    if (error := future.exception()) is not None:
        lines = str(error).splitlines()
        return ProcessStacks(problem=f"its process is gone ({lines[0] if lines else type(error).__name__})")
    return future.result()  # type: ignore[no-any-return]
