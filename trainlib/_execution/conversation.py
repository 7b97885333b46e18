"""What is said between the coordinator and the workers while training functions run, and who is to blame when one fails."""

from __future__ import annotations

import concurrent.futures
import pickle
import queue
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from trainlib._execution import cluster, signals
from trainlib._execution.backend import Backend
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.events import EpochRead, Event, Failed, Finished, Output, Report
from trainlib._execution.group import Member, WorkerGroup
from trainlib._execution.plan import AttemptPlan, Observer
from trainlib._execution.silence import IDLE_S, SilenceWatch, look_at, pulse_in
from trainlib._execution.waiting import gather, raise_if_cancelled
from trainlib._execution.worker import pickled
from trainlib.errors import OutOfStepError, TrainingFailedError
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard

POLL_S = 0.5
# How long functions that were told to stop may take to reach their next report.
STOP_GRACE_S = 5.0
# How long a healthy worker may take to say that it is alive.
ALIVE_S = 3.0
# Ranks do not return in the same instant. One that is this much later than another is not just about to.
RETURN_GRACE_S = 2.0
# How long a rank may then be silent and idle. It waits for those that have returned.
WAITS_IN_VAIN_S = 5.0


class Conversation:
    """Keeps asking every rank what has happened, until all are done or one has failed."""

    def __init__(
        self,
        group: WorkerGroup,
        backend: Backend,
        plan: AttemptPlan,
        observer: Observer,
        shards: list[dict[str, DatasetShard]],
    ) -> None:
        self.abandoned = False
        """Whether functions that were told to stop are still running."""
        self._group = group
        self._members = group.members
        self._backend = backend
        self._plan = plan
        self._observer = observer
        self._shards = shards
        self._inbox: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._reports = [0] * len(group)
        self._finished: dict[int, Finished] = {}
        self._failed: dict[int, Failed] = {}
        self._lost: dict[int, Exception] = {}
        self._returned_at: dict[int, float] = {}
        self._left: set[int] = set()
        self._stopped_at: float | None = None
        self._silence = SilenceWatch([member.facts for member in group.members], look_at)

    @property
    def lost_rank_zero(self) -> bool:
        """Whether nothing can be had from rank 0 any more."""
        return 0 in self._lost

    def run(self) -> list[Any]:
        call = pickled(self._plan.function)
        function = ray.put(call)
        gather(
            [
                member.actor.start.remote(
                    function, replace(self._plan.assignment, context=self._context(member), shards=shards)
                )
                for member, shards in zip(self._members, self._shards, strict=True)
            ]
        )
        for rank in range(len(self._members)):
            self._ask(rank)
        while len(self._finished) < len(self._members):
            self._receive(timeout=POLL_S)
            raise_if_cancelled()
            signals.raise_lost()
            if self._stopped_at is None and self._observer.ends_now():
                self._stop()
            self._lost.update(self._silence.lost(WAITS_IN_VAIN_S if self._left else IDLE_S))
            if self._failed or self._lost:
                raise self._failure()
            if problem := self._out_of_step():
                raise problem
            self._take_leave()
            if self._stopped_at is not None and time.monotonic() - self._stopped_at > STOP_GRACE_S:
                self.abandoned = True
                return [None] * len(self._members)
        return [_unpickled(self._finished[rank].value) for rank in range(len(self._members))]

    def _context(self, member: Member) -> TrainContext:
        place = member.place
        return replace(
            self._plan.assignment.context,
            world_rank=place.world_rank,
            world_size=len(self._members),
            local_rank=place.local_rank,
            local_world_size=place.local_world_size,
            node_rank=place.node_rank,
            attempt=self._plan.number,
        )

    # -- receiving ----------------------------------------------------------------------------------

    def _ask(self, rank: int) -> None:
        slowest = min(self._reports)
        answer = self._members[rank].actor.poll.remote(POLL_S, slowest)
        self._silence.asked(rank)
        answer.future().add_done_callback(lambda future: self._hear(rank, future))

    def _hear(self, rank: int, future: Any) -> None:
        """Called in a thread of Ray's."""
        self._silence.answered(rank)
        self._inbox.put((rank, future))

    def _receive(self, timeout: float) -> None:
        """Take in one answer, if one comes in time."""
        try:
            rank, future = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return
        try:
            events: list[Event] = future.result()
        except ray.exceptions.RayError as error:
            self._lost[rank] = error
            return
        for event in events:
            self._take_in(rank, event)
        if rank not in self._finished and rank not in self._failed:
            self._ask(rank)

    def _take_in(self, rank: int, event: Event) -> None:
        match event:
            case Output():
                self._observer.output(rank, event.text, event.is_error)
            case Report():
                slowest = min(self._reports)
                self._reports[rank] = event.iteration - self._plan.assignment.iterations_done
                if rank == 0 and self._stopped_at is None and self._observer.report(event):
                    self._stop()
                elif self._plan.assignment.in_step and self._stopped_at is None and min(self._reports) > slowest:
                    for member in self._members:
                        member.actor.go_on.remote(min(self._reports))
            case EpochRead():
                self._observer.epoch_read(rank, event)
            case Finished():
                self._finished[rank] = event
                self._returned_at[rank] = time.monotonic()
            case Failed():
                self._failed[rank] = event

    def _stop(self) -> None:
        self._stopped_at = time.monotonic()
        for member in self._members:
            member.actor.stop.remote()

    def _take_leave(self) -> None:
        """Ranks that have returned take part in no collective any more: let the others not wait for them."""
        before = time.monotonic() - RETURN_GRACE_S
        leaving = [rank for rank, at in self._returned_at.items() if at < before and rank not in self._left]
        if leaving and self._stopped_at is None:
            self._left.update(leaving)
            self._backend.on_early_return(self._group, self._plan.backend, leaving)
            for rank, member in enumerate(self._members):
                if rank not in self._finished:
                    member.actor.others_left.remote(leaving)

    def _out_of_step(self) -> TrainingFailedError | None:
        """An error if a rank has returned although another one reports more often."""
        if self._stopped_at is not None:
            return None
        for rank, finished in self._finished.items():
            ahead = max(range(len(self._reports)), key=self._reports.__getitem__)
            all_done = len(self._finished) == len(self._members)
            if finished.reports < self._reports[ahead] and (all_done or ahead != rank):
                error = OutOfStepError(
                    f"rank {ahead} called report() {self._reports[ahead]} times, rank {rank} returned after "
                    f"{finished.reports}. Every rank must call report() equally often."
                )
                failure = self._error(rank, Cause.USER, str(error))
                failure.__cause__ = error
                return failure
        return None

    # -- failing ------------------------------------------------------------------------------------

    def _failure(self) -> TrainingFailedError:
        """The error to raise, once it is known which rank is to blame.

        When a worker dies, its peers fail in their collectives a moment later, and their errors may
        arrive first. So ask all of them whether they live, before blaming a training function.
        """
        until = time.monotonic() + 0.2
        while (left := until - time.monotonic()) > 0:
            self._receive(timeout=left)
        asked = {rank: m.actor.facts.remote() for rank, m in enumerate(self._members) if rank not in self._lost}
        answers = {rank: answer.future() for rank, answer in asked.items()}
        concurrent.futures.wait(answers.values(), timeout=ALIVE_S)
        for rank, answer in answers.items():
            if not answer.done():
                # It may just be busy: with another rank to blame, it is lost only if that can be seen.
                if not (self._failed or self._lost) or self._is_gone(rank):
                    self._lost[rank] = TimeoutError(f"silent for {ALIVE_S:g} s")
            elif isinstance(error := answer.exception(), ray.exceptions.RayError):
                self._lost[rank] = error
        if self._lost:
            causes = {rank: self._cause_of_loss(rank, loss) for rank, loss in self._lost.items()}
            # A lost node explains all the rest.
            rank = min(causes, key=lambda rank: (causes[rank] is not Cause.PREEMPTED, rank))
            preempted = causes[rank] is Cause.PREEMPTED
            what = "lost its node, which was drained or is gone" if preempted else f"died: {why(self._lost[rank])}"
            return self._error(rank, causes[rank], what + self._returned_before())
        rank, failed = min(self._failed.items(), key=lambda item: item[1].timestamp)
        failure = self._error(rank, Cause.USER, f"raised {failed.summary}" + self._returned_before())
        failure.__cause__ = _revive(failed)
        return failure

    def _returned_before(self) -> str:
        if not self._left:
            return ""
        gone = ", ".join(map(str, sorted(self._left)))
        return f" [rank {gone} had returned before: if this was a collective, every rank must take part in it]"

    def _is_gone(self, rank: int) -> bool:
        """Whether a rank that does not answer has lost its node, or is a process that was stopped."""
        facts = self._members[rank].facts
        if cluster.node_is_lost(facts.node_id):
            return True
        look = look_at(facts)
        concurrent.futures.wait([look], timeout=ALIVE_S)
        return look.done() and (pulse := pulse_in(look)) is not None and pulse.stopped

    def _cause_of_loss(self, rank: int, error: Exception) -> Cause:
        return cause_of(error, node_lost=cluster.node_is_lost(self._members[rank].facts.node_id))

    def _error(self, rank: int, cause: Cause, what: str) -> TrainingFailedError:
        facts = self._members[rank].facts
        return TrainingFailedError(
            f"rank {rank} (node {facts.node_ip}, pid {facts.pid}) {what} (attempt {self._plan.number})",
            cause=cause,
            rank=rank,
            node=facts.node_ip,
            attempt=self._plan.number,
        )


def _unpickled(value: bytes) -> Any:
    """What a training function returned; None if this process cannot hold it, e.g. for want of a framework."""
    try:
        return pickle.loads(value)
    except Exception:
        return None


def _revive(failed: Failed) -> BaseException:
    """What the training function raised, with its own traceback as a note."""
    try:
        error = pickle.loads(failed.error)
    except Exception:  # its class is not known here, or does not unpickle
        error = RuntimeError(failed.summary)
    error.add_note(f"\nIn the training function:\n{failed.traceback.rstrip()}")
    return error  # type: ignore[no-any-return]


def why(error: BaseException) -> str:
    """Ray's errors run over many lines; what a person needs is whether memory or a signal was it."""
    text = str(error)
    if "memory" in text.lower() and "OutOfMemory" in type(error).__name__ + text:
        return "out of memory: give each worker more room, or lower the batch size"
    if isinstance(error, TimeoutError):
        return f"it does not answer ({text})"
    if isinstance(error, ray.exceptions.RayActorError):
        return "its process ended: killed from outside, out of memory, or crashed in native code"
    return text.splitlines()[0] if text else repr(error)
