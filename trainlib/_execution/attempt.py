"""One attempt: reserve the gang, start its workers, run the training function, clear everything away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from trainlib._execution import cluster, gang, signals, warm_up
from trainlib._execution.backend import Backend
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.conversation import Conversation, why
from trainlib._execution.group import WorkerGroup
from trainlib._execution.plan import AttemptPlan, Observer
from trainlib.errors import TrainingFailedError

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard


def run(plan: AttemptPlan, observer: Observer) -> list[Any]:
    """Make the attempt; gives what the training function returned, by rank.

    Whatever happens, the gang is released, and no worker is left doing anything.

    Raises:
        TrainingFailedError: it failed; says why, and which rank on which node.
        CapacityError: there is no room for the gang.
    """
    with signals.remembered():
        return _run(plan, observer)


def _run(plan: AttemptPlan, observer: Observer) -> list[Any]:
    warm_up.wait()
    cluster.connect()
    cluster.wait_for_lost_nodes(observer.say)
    if plan.ingest is not None:
        plan.ingest.open(plan.scaling.num_workers, observer.say)
        observer.data_opened(plan.ingest)
        plan = replace(
            plan,
            scaling=plan.ingest.leave_room_for_reading(plan.scaling),
            assignment=replace(plan.assignment, preprocessor=plan.ingest.applied),
        )
    with gang.reserve(plan.scaling, observer.say) as (placement, nodes):
        backend = plan.backend.backend_cls()
        group: WorkerGroup | None = None
        conversation: Conversation | None = None
        try:
            try:
                group = WorkerGroup.start(plan.scaling, plan.backend, placement, nodes)
                backend.on_start(group, plan.backend)
            except TimeoutError as error:
                raise _setup_failed(error, plan, nodes) from error
            observer.started(group.members)
            backend.on_training_start(group, plan.backend)
            if plan.spares:
                group.warm_spares()
            with _shards(plan, group) as shards:
                conversation = Conversation(group, backend, plan, observer, shards)
                values = conversation.run()
        except TrainingFailedError:
            if group is not None:
                try:
                    if conversation is not None and not conversation.lost_rank_zero:
                        group.kill(keep_rank_zero=True)
                        observer.settle()  # rank 0 may be storing a checkpoint, which is worth waiting for
                finally:
                    group.kill()
            raise
        except ray.exceptions.RayError as error:
            _kill(group)
            raise _setup_failed(error, plan, nodes) from getattr(error, "cause", error)
        except BaseException:
            _kill(group)
            raise
        try:
            observer.settle()
        except BaseException:
            group.kill()
            raise
        _hand_on(group, backend, plan, reusable=not conversation.abandoned)
        return values


@contextmanager
def _shards(plan: AttemptPlan, group: WorkerGroup) -> Iterator[list[dict[str, DatasetShard]]]:
    """What each rank reads, for as long as the block runs."""
    if plan.ingest is None:
        yield [{} for _ in group.members]
        return
    with plan.ingest.shards([member.facts.node_id for member in group.members], plan.scaling) as shards:
        yield shards


def _hand_on(group: WorkerGroup, backend: Backend, plan: AttemptPlan, *, reusable: bool) -> None:
    """The training has succeeded: what goes wrong from here on costs the workers, not the result."""
    if reusable:
        try:
            backend.on_shutdown(group, plan.backend)
        except (ray.exceptions.RayError, TimeoutError):
            reusable = False
        except BaseException:
            group.kill()
            raise
    if reusable:
        group.release()
    else:
        group.kill()


def _kill(group: WorkerGroup | None) -> None:
    if group is not None:
        group.kill()


def _setup_failed(error: Exception, plan: AttemptPlan, nodes: list[str]) -> TrainingFailedError:
    """A worker was lost, or the backend raised, before the training function ran."""
    cause = cause_of(error, node_lost=any(cluster.node_is_lost(node) for node in nodes))
    if isinstance(error, ray.exceptions.RayTaskError):
        what = f"setting up {plan.backend.framework} raised {type(error.cause).__name__}: {error.cause}"
    elif cause is Cause.USER:
        what = f"a worker for {plan.backend.framework} could not be started: {str(error).strip().splitlines()[-1]}"
    else:
        what = f"a worker was lost while {plan.backend.framework} was set up: {why(error)}"
    return TrainingFailedError(f"{what} (attempt {plan.number})", cause=cause, attempt=plan.number)
