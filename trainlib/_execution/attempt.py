"""One attempt: reserve the gang, start its workers, run the training function, clear everything away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from types import TracebackType
from typing import Any, Self

import ray

from trainlib._execution import cluster, gang, liveness, remote_env, signals, warm_up
from trainlib._execution.blame import why
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.conversation import Conversation
from trainlib._execution.events import AttemptEvent, DataOpened, Note, Report, Started
from trainlib._execution.group import WorkerGroup
from trainlib._execution.missing import advice, missing_module, setup_problem
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.stacks.board import noted
from trainlib._execution.stacks.desk import StacksDesk
from trainlib._execution.waiting import cancelled_by, gather, pause
from trainlib.errors import CapacityError, RayLostError, TrainingFailedError, TrainlibError

_LOOK_S = 0.5
# A rank 0 that takes longer to remove its snapshots hangs, and is ended without that.
_CLEAR_S = 5.0


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
        with ExitStack() as entered:
            entered.enter_context(signals.remembered())
            entered.enter_context(cluster.in_use())
            self._desk = StacksDesk(self._plan.assignment.context.run_id)
            entered.callback(self._desk.close)
            self._resources = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self._lost_ray(error)
        if lost is not None:
            cluster.leave(self._session)  # before anything is cleared away: Ray would not answer
        self._resources.__exit__(kind, error, trace)
        if lost is not None and lost is not error:
            raise lost from error

    def _lost_ray(self, error: BaseException | None) -> RayLostError | None:
        """The loss of Ray that explains an error, if any. When another training has left it, what Ray says is anything."""
        if isinstance(error, RayLostError):
            return error
        if not isinstance(error, Exception) or isinstance(error, TrainlibError):
            return None
        if self._session is None or liveness.session() == self._session:
            return None
        return RayLostError(liveness.LEFT)

    def __iter__(self) -> Iterator[AttemptEvent]:
        # Not one generator around the others: a report should not pass through more hands than it has to.
        steps = (self._connect, self._open_data, self._reserve, self._start_workers, self._converse)
        return chain.from_iterable(step() for step in steps)

    def stop(self, *, after_last_report: bool = False) -> None:
        """End the training function on all ranks: at their next report, or, after a few seconds, without them.

        With ``after_last_report``, a report of rank 0 that is on its way is still yielded: its checkpoint is not lost.
        """
        if self._conversation is not None:
            self._conversation.stop(after_last_report=after_last_report)

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
        cluster.connect(self._plan.scaling.runtime_env)
        self._session = liveness.session()
        yield from map(Note, remote_env.notices())
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
        """Reserve the gang, if a CPU is left for reading its data then. Otherwise it is given back until there is one: two
        trainings that each held their gang would wait for each other."""
        scaling = gang.fitted_to_cluster(self._plan.scaling)
        self._plan = replace(self._plan, scaling=scaling)
        deadline = time.monotonic() + scaling.placement_timeout_s
        while True:
            with ExitStack() as room:
                self._placement = room.enter_context(gang.reserved(scaling))
                yield from map(Note, gang.wait_for_room(self._placement, scaling))
                if self._plan.ingest is None or self._plan.ingest.lacks_cpu() is None:
                    self._nodes = gang.nodes_of(self._placement, scaling)
                    self._resources.enter_context(room.pop_all())
                    return
            yield from self._wait_for_cpu(deadline)

    def _wait_for_cpu(self, deadline: float) -> Iterator[AttemptEvent]:
        assert self._plan.ingest is not None
        asked = self._plan.scaling.total_resources.get("CPU", 0.0)
        told = False
        while (problem := self._plan.ingest.lacks_cpu(asked)) is not None:
            if time.monotonic() > deadline:
                raise CapacityError(
                    f"{problem}. Wait until another training has ended, lower num_workers, pass materialized Ray Datasets, or "
                    "raise ScalingConfig.placement_timeout_s"
                )
            if not told:
                yield Note(f"waiting for a CPU: {problem} (giving up in {deadline - time.monotonic():.0f} s)")
                told = True
            pause(_LOOK_S)
            liveness.require_answer()

    def _start_workers(self) -> Iterator[AttemptEvent]:
        plan = self._plan
        if plan.scaling.runtime_env is not None and plan.scaling.runtime_env.pip:
            yield Note("the workers' nodes install packages, unless they have done so before: that may take minutes")
        with self._explains_setup_failures():
            self._group = WorkerGroup.start(plan.scaling, plan.backend, self._placement, self._nodes)
            self._resources.push(self._end_workers)
            self._rank_zero = self._group.members[0].actor
            if self._desk is not None:
                self._desk.watch(self._group.members)
            workers = [member.facts for member in self._group.members]
            self._resources.enter_context(noted(plan.assignment.context.run_id, workers))
            if self._backend.share_cuda_visible_devices:
                self._group.share_gpus()
            self._backend.on_start(self._group, plan.backend)
        yield Started(workers)
        with self._explains_setup_failures():
            self._backend.on_training_start(self._group, plan.backend)
            if plan.spares:
                self._group.warm_spares()
            shards: list[dict[str, Any]] = [{} for _ in self._group.members]
            if plan.ingest is not None:
                nodes = [member.facts.node_id for member in self._group.members]
                actors = [member.actor for member in self._group.members]
                shards = self._resources.enter_context(plan.ingest.shards(nodes, plan.scaling, actors))
            self._conversation = Conversation(self._group, self._backend, plan)
            self._conversation.start(shards)

    def _converse(self) -> Iterator[AttemptEvent]:
        assert self._conversation is not None
        return self._conversation.events()

    # -- ending ---------------------------------------------------------------------------------------

    def _end_workers(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Hand the workers on after a success; end them after anything else."""
        self._clear_staging()
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

    def _clear_staging(self) -> None:
        """Have rank 0 remove its snapshots, if nobody else sees its disk: a worker that is killed leaves all files behind."""
        if self._plan.assignment.shares_disk or not self._group.members or liveness.session() != self._session:
            return
        gone = (ray.exceptions.RayError, RayLostError, TimeoutError)
        with cancelled_by(None), suppress(*gone):
            gather([self._group.members[0].actor.clear_staging.remote()], timeout=_CLEAR_S)

    @contextmanager
    def _explains_setup_failures(self) -> Iterator[None]:
        """Say what went wrong when a worker was lost, or the backend raised, before the training function ran."""
        try:
            yield
        except (ray.exceptions.RayError, TimeoutError) as error:
            plan = self._plan
            cause = cause_of(error, node_lost=any(cluster.node_is_lost(node) for node in self._nodes))
            if isinstance(error, ray.exceptions.RuntimeEnvSetupError):
                what = f"the runtime_env of a worker could not be set up on node {self._hosts}: {setup_problem(str(error))}"
            elif isinstance(error, ray.exceptions.RayTaskError):
                what = f"setting up {plan.backend.framework} raised {type(error.cause).__name__}: {error.cause}"
            elif cause is Cause.USER:
                last_line = str(error).strip().splitlines()[-1]
                what = f"a worker for {plan.backend.framework} could not be started: {last_line}"
            else:
                what = f"a worker was lost while {plan.backend.framework} was set up: {why(error)}"
            module = missing_module(str(error))
            remedy = f". {advice(module, self._hosts)}" if module is not None else ""
            failure = TrainingFailedError(f"{what} (attempt {plan.number}){remedy}", cause=cause, attempt=plan.number)
            raise failure from getattr(error, "cause", error)

    @property
    def _hosts(self) -> str:
        """The names of the gang's nodes."""
        nodes = [node for node in ray.nodes() if node["NodeID"] in self._nodes]
        return " or ".join(sorted({f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})" for node in nodes}))
