"""A gang: room for all workers at once, reserved as one placement group."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group

from trainlib._execution import cluster, liveness
from trainlib._execution.waiting import gather
from trainlib.config import ScalingConfig
from trainlib.errors import CapacityError

# A bundle of a placement group has to reserve something. Every local Ray has plenty of this resource.
_NO_CPU = {"CPU": 0.0, "node:__internal_head__": 0.001}
# Each is a process with a framework in it. A machine with more of them does nothing but swap.
MOST_PER_CPU = 8


def reserving_no_cpu(scaling: ScalingConfig) -> ScalingConfig | None:
    """The same workers, reserving no CPUs; None if they may not do without.

    On a Ray of this machine alone CPUs are only counted: workers run whether they have reserved any or not. So those that
    did not ask for CPUs may outnumber them. On a cluster, CPUs say which node has room.
    """
    given = scaling.resources_per_worker or {}
    if "CPU" in given or not cluster.is_local() or scaling.num_workers > MOST_PER_CPU * (os.cpu_count() or 1):
        return None
    return scaling.model_copy(update={"resources_per_worker": {**given, **_NO_CPU}})


def fitted_to_cluster(scaling: ScalingConfig) -> ScalingConfig:
    """The workers, which reserve no CPUs if there are too few for all of them, and they may do without."""
    if scaling.total_resources.get("CPU", 0.0) <= ray.cluster_resources().get("CPU", 0.0):
        return scaling
    return reserving_no_cpu(scaling) or scaling


@contextmanager
def reserved(scaling: ScalingConfig) -> Iterator[PlacementGroup]:
    """Ask for the gang's room, and give it back when the block ends. :func:`wait_for_room` waits until it is there.

    Raises:
        CapacityError: this machine can never hold it.
    """
    if cluster.is_local() and (problem := never_fits(scaling)):
        raise CapacityError(problem)
    group, session = placement_group(scaling.bundles, strategy=scaling.placement_strategy), liveness.session()
    try:
        yield group
    finally:
        if liveness.answers(session):  # otherwise its Ray is gone, and the room with it
            remove_placement_group(group)


def nodes_of(group: PlacementGroup, scaling: ScalingConfig) -> list[str]:
    """The node of each worker, once there is room for them."""
    liveness.require_answer()
    nodes = placement_group_table(group)["bundles_to_node_id"]
    return [nodes[index] for index in range(scaling.num_workers)]


def never_fits(scaling: ScalingConfig) -> str | None:
    """What is wrong with a gang that the present nodes could not hold even if they were idle; None if nothing is."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    total = ray.cluster_resources()
    for name, amount in scaling.total_resources.items():
        if total.get(name, 0.0) < amount:
            hint = (
                "set use_gpu=False, or point RAY_ADDRESS at a cluster that has GPUs"
                if name == "GPU"
                else "lower num_workers or resources_per_worker, or point RAY_ADDRESS at a larger cluster"
            )
            return f"{_asked(scaling)}, which is {amount:g} {name}; the cluster has {total.get(name, 0.0):g}: {hint}"
    if scaling.placement_strategy == "STRICT_SPREAD" and len(nodes) < len(scaling.bundles):
        return (
            f"{_asked(scaling)}, each on a node of its own (STRICT_SPREAD); the cluster has {len(nodes)} "
            "node(s): use placement_strategy='SPREAD' or 'PACK'"
        )
    return None


def wait_for_room(group: PlacementGroup, scaling: ScalingConfig) -> Iterator[str]:
    """Wait until the gang has its room. Yields what a person should know of the wait.

    Raises:
        CapacityError: it has none after ``placement_timeout_s``.
    """
    deadline = time.monotonic() + scaling.placement_timeout_s
    ready = group.ready()
    notice_after = 2.0
    while True:
        left = deadline - time.monotonic()
        try:
            gather([ready], timeout=max(0.05, min(notice_after, left)))
            return
        except TimeoutError:
            liveness.require_answer()
            free = ", ".join(f"{ray.available_resources().get(n, 0.0):g} {n}" for n in scaling.total_resources)
            free += _held_here(scaling)
            if left <= 0:
                problem = never_fits(scaling) or f"{_asked(scaling)}; only {free} became free"
                raise CapacityError(
                    f"no room for the workers in {scaling.placement_timeout_s:g} s: {problem}. Wait for other work to "
                    "end, ask for less, or raise ScalingConfig.placement_timeout_s."
                ) from None
            yield f"waiting for room: {_asked(scaling)}; free now: {free} (giving up in {left:.0f} s)"
            notice_after = 10.0


def _held_here(scaling: ScalingConfig) -> str:
    """What the task or actor that ``fit()`` runs in keeps from its own workers."""
    if ray._private.worker.global_worker.mode != ray.WORKER_MODE:
        return ""
    context = ray.get_runtime_context()
    held = {
        name: amount for name, amount in context.get_assigned_resources().items() if name in scaling.total_resources
    }
    if not held:
        return ""
    kind = "actor" if context.get_actor_id() else "task"
    amounts = ", ".join(f"{amount:g} {name}" for name, amount in held.items())
    return f" (fit() itself runs in a Ray {kind} that holds {amounts}: declare it with @ray.remote(num_cpus=0))"


def _asked(scaling: ScalingConfig) -> str:
    each = ", ".join(f"{amount:g} {name}" for name, amount in scaling.worker_resources.items())
    return f"asked for {scaling.num_workers} worker(s) with {each} each"
