"""One attempt: reserve the gang, start its workers, run the training function, clear everything away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from types import TracebackType
from typing import Any, Self

import ray

from trainlib._execution import cluster, gang, liveness, signals, warm_up
from trainlib._execution.blame import why
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.conversation import Conversation
from trainlib._execution.events import AttemptEvent, DataOpened, Note, Report, Started
from trainlib._execution.group import WorkerGroup
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.stacks.desk import StacksDesk
from trainlib._execution.waiting import gather
from trainlib.errors import RayLostError, TrainingFailedError


class Attempt:
    """Makes an attempt while it is iterated over, and yields what happens in it.

    The workers live until the block ends, so that checkpoints can still be fetched from them. Whatever happens, the gang
    is released then, and no worker is left doing anything.

    Example::

        with Attempt(plan) as attempt:
            for event in attempt:
                if enough(event):
                    attempt.stop()
        values = attempt.returned

    Raises:
        TrainingFailedError: while iterating: the attempt failed; the error says why, and which rank on which node.
        CapacityError: while iterating: there is no room for the gang.
    """

    def __init__(self, plan: AttemptPlan) -> None:
        self._plan = plan
        self._backend = plan.backend.backend_cls()
        self._resources = ExitStack()
        self._placement: Any = None
        self._nodes: list[str] = []
        self._group: Any = None
        self._rank_zero: Any = None
        self._conversation: Conversation | None = None
        self._desk: StacksDesk | None = None
        self._session: str | None = None

    def __enter__(self) -> Self:
        self._resources.enter_context(signals.remembered())
        self._desk = StacksDesk(self._plan.assignment.context.run_id)
        self._resources.callback(self._desk.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, RayLostError):
            cluster.leave(self._session)  # before anything is cleared away: Ray would not answer
        self._resources.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[AttemptEvent]:
        # Not one generator around the others: a report should not pass through more hands than it has to.
        steps = (self._connect, self._open_data, self._reserve, self._start_workers, self._converse)
        return chain.from_iterable(step() for step in steps)

    def stop(self) -> None:
        """End the training function on all ranks: at their next report, or, after a few seconds, without them."""
        if self._conversation is not None:
            self._conversation.stop()

    @property
    def is_stopping(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._conversation is not None and self._conversation.is_stopping

    def store(self, folder: str, location: str) -> None:
        """Have rank 0 bring a folder on its disk to where checkpoints are kept, and wait for it."""
        try:
            gather([self._rank_zero.store.remote(folder, location)])
        except ray.exceptions.RayTaskError as error:  # it has the worker's whole traceback in it, with colours
            raise error.cause if isinstance(error.cause, Exception) else OSError(str(error.cause)) from None
        except (ray.exceptions.RayError, RayLostError) as error:
            raise FileNotFoundError(f"rank 0 is gone, and the files with it: {why(error)}") from None

    def unread_reports(self, timeout: float) -> list[Report]:
        """Stop the training functions, and give what rank 0 has reported by now, for a reader that was interrupted."""
        return self._conversation.unread_reports(timeout) if self._conversation is not None else []

    def settle_checkpoints(self, newest: int) -> None:
        """Tell rank 0 that its checkpoints up to this number wait on its disk no more."""
        if self._conversation is not None:
            self._conversation.settle_checkpoints(newest)

    @property
    def returned(self) -> list[Any]:
        """What the training function returned, by rank; None for a rank that was stopped."""
        assert self._conversation is not None
        return self._conversation.returned

    @property
    def stacks(self) -> str | None:
        """What all threads of all ranks were doing, if the attempt failed because a rank hung."""
        return self._conversation.stacks if self._conversation is not None else None

    # -- the steps ------------------------------------------------------------------------------------

    def _connect(self) -> Iterator[AttemptEvent]:
        warm_up.wait()
        if (notice := cluster.reconnecting()) is not None:
            yield Note(notice)
        cluster.connect()
        self._session = liveness.session()
        yield from map(Note, cluster.wait_for_lost_nodes())

    def _open_data(self) -> Iterator[AttemptEvent]:
        plan = self._plan
        if plan.ingest is None:
            return
        yield from map(Note, plan.ingest.open(plan.scaling.num_workers))
        yield DataOpened(plan.ingest)
        self._plan = replace(
            plan,
            scaling=plan.ingest.leave_room_for_reading(plan.scaling),
            assignment=replace(plan.assignment, preprocessor=plan.ingest.applied),
        )

    def _reserve(self) -> Iterator[AttemptEvent]:
        self._placement = self._resources.enter_context(gang.reserved(self._plan.scaling))
        yield from map(Note, gang.wait_for_room(self._placement, self._plan.scaling))
        self._nodes = gang.nodes_of(self._placement, self._plan.scaling)

    def _start_workers(self) -> Iterator[AttemptEvent]:
        plan = self._plan
        with self._explains_setup_failures():
            self._group = WorkerGroup.start(plan.scaling, plan.backend, self._placement, self._nodes)
            self._resources.push(self._end_workers)
            self._rank_zero = self._group.members[0].actor
            if self._desk is not None:
                self._desk.watch(self._group.members)
            self._backend.on_start(self._group, plan.backend)
        yield Started([member.facts for member in self._group.members])
        with self._explains_setup_failures():
            self._backend.on_training_start(self._group, plan.backend)
            if plan.spares:
                self._group.warm_spares()
            shards: list[dict[str, Any]] = [{} for _ in self._group.members]
            if plan.ingest is not None:
                nodes = [member.facts.node_id for member in self._group.members]
                shards = self._resources.enter_context(plan.ingest.shards(nodes, plan.scaling))
            self._conversation = Conversation(self._group, self._backend, plan)
            self._conversation.start(shards)

    def _converse(self) -> Iterator[AttemptEvent]:
        assert self._conversation is not None
        return self._conversation.events()

    # -- ending ---------------------------------------------------------------------------------------

    def _end_workers(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Hand the workers on after a success; end them after anything else."""
        if error is not None or self._conversation is None or not self._conversation.ended_well:
            self._group.kill()
            return
        # The training has succeeded: what goes wrong from here on costs the workers, not the result.
        try:
            self._backend.on_shutdown(self._group, self._plan.backend)
        except (ray.exceptions.RayError, RayLostError, TimeoutError):
            self._group.kill()
        except BaseException:
            self._group.kill()
            raise
        else:
            self._group.release()

    @contextmanager
    def _explains_setup_failures(self) -> Iterator[None]:
        """Say what went wrong when a worker was lost, or the backend raised, before the training function ran."""
        try:
            yield
        except (ray.exceptions.RayError, TimeoutError) as error:
            plan = self._plan
            cause = cause_of(error, node_lost=any(cluster.node_is_lost(node) for node in self._nodes))
            if isinstance(error, ray.exceptions.RayTaskError):
                what = f"setting up {plan.backend.framework} raised {type(error.cause).__name__}: {error.cause}"
            elif cause is Cause.USER:
                last_line = str(error).strip().splitlines()[-1]
                what = f"a worker for {plan.backend.framework} could not be started: {last_line}"
            else:
                what = f"a worker was lost while {plan.backend.framework} was set up: {why(error)}"
            failure = TrainingFailedError(f"{what} (attempt {plan.number})", cause=cause, attempt=plan.number)
            raise failure from getattr(error, "cause", error)
