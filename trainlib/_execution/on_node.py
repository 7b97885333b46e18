"""Calls about a worker's process, made from outside of it on its node: it may be unable to answer itself."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

if TYPE_CHECKING:
    from trainlib._execution.worker import WorkerFacts


def call_on_node(worker: WorkerFacts, function: Callable[[int], Any]) -> Future[Any]:
    """Call ``function`` with the worker's pid on its node. Elsewhere, that happens in the background."""
    if worker.hostname == socket.gethostname() and worker.node_id == ray.get_runtime_context().get_node_id():
        found: Future[Any] = Future()
        found.set_result(function(worker.pid))
        return found
    there = NodeAffinitySchedulingStrategy(worker.node_id, soft=False)
    remote = ray.remote(function).options(num_cpus=0, scheduling_strategy=there, max_retries=0)
    return remote.remote(worker.pid).future()  # type: ignore[no-any-return]
