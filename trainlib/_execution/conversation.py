"""What the coordinating process and its workers say to each other while training functions run."""

from __future__ import annotations

import contextlib
import pickle
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from trainlib._execution import blame, liveness, signals
from trainlib._execution.backend import Backend
from trainlib._execution.events import (
    AttemptEvent,
    EpochRead,
    Failed,
    FileSent,
    Finished,
    Note,
    Output,
    RankReports,
    Report,
    Seeded,
    Tick,
    WorkerEvent,
)
from trainlib._execution.gathering import Gathering
from trainlib._execution.group import Member, WorkerGroup
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.silence import IDLE_S, SilenceWatch, inspect_process
from trainlib._execution.waiting import cancelled_by, gather, raise_if_cancelled
from trainlib._execution.worker import pickled
from trainlib.errors import RayLostError, TrainingFailedError
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard

POLL_S = 0.5
# How long functions that were told to stop may take to reach their next report.
STOP_GRACE_S = 5.0
# The same for those that save their state then, and so first end what they are computing: a round of boosting, for one.
SAVE_GRACE_S = 600.0
# Ranks do not return in the same instant. One that is this much later than another is not just about to.
RETURN_GRACE_S = 2.0
# How long a rank may then be silent and idle before it counts as lost: it waits for those that have returned.
WAITS_IN_VAIN_S = 5.0
# When a worker dies, its peers fail in their collectives a moment later. This is how long their errors may take.
AFTERMATH_S = 0.2


class Conversation:
    """Keeps asking every rank what has happened, until all are done or one has failed."""

    def __init__(self, group: WorkerGroup, backend: Backend, plan: AttemptPlan) -> None:
        self.stacks: str | None = None
        """What all threads of all ranks were doing, if the attempt failed because a rank hung."""
        self._group = group
        self._members = list(group.members)
        self._backend = backend
        self._plan = plan
        self._inbox: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._asked: dict[int, Any] = {}
        """The latest question to each rank. Whatever was in the answers to earlier ones has been taken in."""
        self._reports = [0] * len(group)
        self._gathering = Gathering(len(group)) if plan.assignment.all_ranks else None
        self._finished: dict[int, Finished] = {}
        self._failed: dict[int, Failed] = {}
        self._lost: dict[int, Exception] = {}
        self._returned_at: dict[int, float] = {}
        self._left: set[int] = set()
        self._stopped_at: float | None = None
        self._grace_s = STOP_GRACE_S
        self._hands_on_last = False
        self._let_go_from = 0
        """The report that ranks in step were last told to go on from."""
        self._unheard: list[Report] = []
        """What rank 0 reported before it heard of :meth:`stop`. The reader does not want it, unless it is interrupted."""
        self._settled = plan.assignment.next_checkpoint - 1
        self._session = group.members[0].kind.session
        self._silence = SilenceWatch([member.facts for member in group.members], inspect_process)

    @property
    def ended_well(self) -> bool:
        """Whether the training function has ended on all ranks, so that their workers can be used again."""
        return len(self._finished) == len(self._members)

    @property
    def is_stopping(self) -> bool:
        """Whether the training functions have been told to stop."""
        return self._stopped_at is not None

    @property
    def returned(self) -> list[Any]:
        """What the training function returned, by rank; None for a rank that was stopped and did not return."""
        ranks = range(len(self._members))
        return [_unpickled(self._finished[rank].value) if rank in self._finished else None for rank in ranks]

    def start(self, shards: Sequence[dict[str, DatasetShard]]) -> None:
        """Start the training function on all ranks; ``shards`` is what each of them reads."""
        function = ray.put(pickled(self._plan.function))
        # Apart from the assignment: one that is in memory alone is then sent to each node once, and not to each rank.
        resume_from = ray.put(self._plan.assignment.resume_from)
        assignment = replace(self._plan.assignment, resume_from=None)
        rank_zero = self._members[0].actor
        gather(
            [
                member.actor.start.remote(
                    function,
                    replace(
                        assignment,
                        context=self._context(member),
                        shards=own,
                        rank_zero=rank_zero if member.place.world_rank else None,
                    ),
                    resume_from,
                )
                for member, own in zip(self._members, shards, strict=True)
            ]
        )

    def events(self) -> Iterator[AttemptEvent]:
        """What happens, until the training function has ended on all ranks.

        Raises:
            TrainingFailedError: it failed on one of them, and not because others were stopped before it. The others are ended
                then, except for rank 0, which may still be storing a checkpoint.
        """
        for rank in range(len(self._members)):
            self._ask(rank)
        ticked_at = time.monotonic()
        while not self.ended_well:
            yield from self._receive(timeout=POLL_S)
            if time.monotonic() - ticked_at >= POLL_S:
                ticked_at = time.monotonic()
                liveness.require(self._session)
                yield Tick()
            raise_if_cancelled()
            signals.raise_lost()
            self._lost.update(self._silence.lost(WAITS_IN_VAIN_S if self._left else IDLE_S))
            if self._lost or (self._failed and not self._are_stopped_apart):
                until = time.monotonic() + AFTERMATH_S
                while (left := until - time.monotonic()) > 0:
                    yield from self._receive(timeout=left)
                raise self._failure()
            if (failure := self._out_of_step()) is not None:
                raise failure
            self._let_go_of_returned()
            if self._stopped_at is not None and (
                self._none_runs or time.monotonic() - self._stopped_at > self._grace_s
            ):
                if not blame.are_left_alone(self._members, finished=self._finished, failed=self._failed):
                    raise self._failure()
                return  # some functions still run, or failed without the others; their workers are ended with the attempt

    def stop(self, *, after_last_report: bool = False) -> None:
        """End the training functions at their next report.

        With ``after_last_report``, what rank 0 has reported by then, and is still on its way, is handed on.
        """
        if self._stopped_at is None:
            self._hands_on_last = after_last_report
            self._stopped_at = time.monotonic()
            for member in self._members:
                member.actor.stop.remote(self._let_go_from)

    def unread_reports(self, timeout: float) -> list[Report]:
        """Stop the training functions, and give what rank 0 has reported by now, for a reader that was interrupted.

        What the reader was given last may be among it. A rank 0 that is lost or hangs is waited for no longer than
        ``timeout`` seconds.
        """
        if 0 not in self._asked:
            return []
        self.stop()
        deadline = time.monotonic() + timeout
        rank_zero, asked = self._members[0].actor, self._asked[0]
        reports = list(self._unheard)  # or those that came later would leave a gap behind them

        def read(answer: Any) -> None:
            events = answer.result(max(0.0, deadline - time.monotonic()))
            reports.extend(event for event in events if isinstance(event, Report))

        with cancelled_by(None), contextlib.suppress(ray.exceptions.RayError, RayLostError, TimeoutError):
            is_here = asked.done()
            if is_here:  # whatever becomes of rank 0, this is known
                read(asked)
            gather([rank_zero.stop.remote(self._let_go_from)], timeout=timeout)
            rest = rank_zero.poll.remote(0.0, min(self._reports)).future()
            for answer in (rest,) if is_here else (asked, rest):
                read(answer)
        return reports

    def settle_checkpoints(self, newest: int) -> None:
        """Tell rank 0 that its checkpoints up to this number wait on its disk no more."""
        if newest > self._settled:
            self._settled = newest
            self._members[0].actor.settle_checkpoints.remote(newest)

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
        self._asked[rank] = answer.future()
        self._asked[rank].add_done_callback(lambda future: self._queue_answer(rank, future))

    def _queue_answer(self, rank: int, future: Any) -> None:
        """Called in one of Ray's threads."""
        self._silence.answered(rank)
        self._inbox.put((rank, future))

    def _receive(self, timeout: float) -> Iterator[AttemptEvent]:
        """What is in the next answer, if one comes in time."""
        try:
            rank, future = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return
        try:
            events: list[WorkerEvent] = future.result()
        except ray.exceptions.RayError as error:
            self._lost[rank] = error
            return
        for event in events:
            match event:
                case Report():
                    yield from self._on_report(rank, event)
                case Output() | EpochRead() | Seeded() | FileSent():
                    yield replace(event, rank=rank)
                case Note():
                    yield event
                case Finished():
                    self._finished[rank] = event
                    self._returned_at[rank] = time.monotonic()
                case Failed():
                    self._failed[rank] = event
        if rank not in self._finished and rank not in self._failed:
            self._ask(rank)

    def _on_report(self, rank: int, report: Report) -> Iterator[Report | RankReports]:
        """Count a report, and hand on that of rank 0. Ranks that are in step go on unless the reader has called stop()."""
        slowest = min(self._reports)
        self._reports[rank] = report.iteration - self._plan.assignment.iterations_done
        in_step = self._plan.assignment.in_step
        if report.saves_when_stopped and (in_step or len(self._members) == 1):  # none waits for another one in vain
            self._grace_s = SAVE_GRACE_S
        if rank == 0 and (self._stopped_at is None or self._hands_on_last or report.saves_when_stopped):
            yield report
        elif rank == 0:
            self._unheard.append(report)
        if self._gathering is not None and self._stopped_at is None:
            gathered = self._gathering.add(rank, report)
            if gathered is not None:
                yield gathered
        if in_step and self._stopped_at is None and min(self._reports) > slowest:
            self._let_go_from = min(self._reports)
            for member in self._members:
                member.actor.go_on.remote(self._let_go_from)

    def _let_go_of_returned(self) -> None:
        """Ranks that have returned take part in no more collectives: see to it that the others do not wait for them."""
        before = time.monotonic() - RETURN_GRACE_S
        leaving = [rank for rank, at in self._returned_at.items() if at < before and rank not in self._left]
        if leaving and self._stopped_at is None:
            self._left.update(leaving)
            self._backend.on_early_return(self._group, self._plan.backend, leaving)
            for rank, member in enumerate(self._members):
                if rank not in self._finished:
                    member.actor.others_left.remote(leaving)

    @property
    def _none_runs(self) -> bool:
        """Whether the training functions of all ranks have ended, some of them with an error."""
        return len(self._finished) + len(self._failed) == len(self._members)

    @property
    def _are_stopped_apart(self) -> bool:
        """Whether the ranks were told to stop and do so at different reports.

        One that has made a report more may then fail in a collective, because the others have left it. That is no failure of the
        training. One that fails before any other has stopped is.
        """
        return self._stopped_at is not None and not self._plan.assignment.in_step

    # -- failing ------------------------------------------------------------------------------------

    def _failure(self) -> TrainingFailedError:
        self._lost.update(blame.newly_lost(self._members, failed=self._failed, lost=self._lost))
        failure = blame.failure_of(
            self._members, failed=self._failed, lost=self._lost, returned=self._left, attempt=self._plan.number
        )
        if blame.is_hang(self._members, failed=self._failed, lost=self._lost):
            self.stacks = blame.add_stacks(failure, self._members, self._failed)
        return self._with_others_ended(failure)

    def _out_of_step(self) -> TrainingFailedError | None:
        """An error if a rank has returned although another one reports more often."""
        if self._stopped_at is not None:
            return None
        for rank, finished in self._finished.items():
            ahead = max(range(len(self._reports)), key=self._reports.__getitem__)
            if finished.reports < self._reports[ahead] and (self.ended_well or ahead != rank):
                failure = blame.out_of_step(
                    self._members[rank], self._plan.number, finished.reports, ahead, self._reports[ahead]
                )
                return self._with_others_ended(failure)
        return None

    def _with_others_ended(self, failure: TrainingFailedError) -> TrainingFailedError:
        """End the ranks that cannot go on. Rank 0 stays, if it lives: it may be storing a checkpoint."""
        self._group.kill(keep_rank_zero=0 not in self._lost)
        return failure


def _unpickled(value: bytes) -> Any:
    """What a training function returned; None if this process cannot hold it, e.g. without its framework."""
    try:
        return pickle.loads(value)
    except Exception:
        return None
