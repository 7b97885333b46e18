"""Which rank is to blame when an attempt fails, and what its error says.

When a worker dies, its peers fail in their collectives a moment later, and their errors may arrive first. So all ranks
are asked whether they live before a training function is blamed.
"""

from __future__ import annotations

import concurrent.futures
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import ray

from trainlib._execution import cluster
from trainlib._execution.carried_errors import revived
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.events import Failed, Finished
from trainlib._execution.group import Member
from trainlib._execution.missing import advice, missing_module
from trainlib._execution.silence import inspect_process, pulse_in
from trainlib._execution.stacks.collect import collect_stacks
from trainlib._execution.stacks.report import in_full, in_short
from trainlib.errors import OutOfStepError, TrainingFailedError

# How long a healthy worker may take to say that it is alive.
ALIVE_S = 3.0
# What frameworks, and trainlib itself, say when a rank has waited in vain for another one. Horovod says nothing but that it
# has ended the job. Whoever says something like it for another reason gets stacks that are not needed.
_WAITED_IN_VAIN = re.compile(r"time[ds]?[ -]?out|deadline|stalled|out ?of ?step|HorovodInternalError", re.IGNORECASE)


def newly_lost(
    members: Sequence[Member], *, failed: Mapping[int, Failed], lost: Mapping[int, Exception]
) -> dict[int, Exception]:
    """The ranks that turn out to be gone when they are asked, besides those that are known to be ``lost``."""
    found: dict[int, Exception] = {}
    asked = {rank: member.actor.facts.remote() for rank, member in enumerate(members) if rank not in lost}
    answers = {rank: answer.future() for rank, answer in asked.items()}
    concurrent.futures.wait(answers.values(), timeout=ALIVE_S)
    for rank, answer in answers.items():
        if not answer.done():
            # It may just be busy: with another rank to blame, it is lost only if that can be seen.
            if not (failed or lost or found) or _is_gone(members[rank]):
                found[rank] = TimeoutError(f"silent for {ALIVE_S:g} s")
        elif isinstance(error := answer.exception(), ray.exceptions.RayError):
            found[rank] = error
    return found


def failure_of(
    members: Sequence[Member],
    *,
    failed: Mapping[int, Failed],
    lost: Mapping[int, Exception],
    returned: AbstractSet[int],
    attempt: int,
) -> TrainingFailedError:
    """The error of an attempt in which ranks ``failed`` or were ``lost``; ``returned`` are those that ended before."""
    hint = _returned_before(returned)
    if lost:
        causes = {rank: _cause_of_loss(members[rank], error) for rank, error in lost.items()}
        # A lost node explains all the rest.
        rank = min(causes, key=lambda rank: (causes[rank] is not Cause.PREEMPTED, rank))
        preempted = causes[rank] is Cause.PREEMPTED
        what = "lost its node, which was drained or is gone" if preempted else f"died: {why(lost[rank])}"
        return _error(members[rank], causes[rank], what + hint, attempt)
    rank = _first_to_fail(members, failed)
    raised = _revived(failed[rank], members[rank], attempt)
    # No code is to blame when a disk is full.
    cause = Cause.STORAGE if cause_of(raised) is Cause.STORAGE else Cause.USER
    what = f"raised {failed[rank].summary}" + hint
    failure = _error(members[rank], cause, what, attempt, advice=_advice(members[rank], raised))
    failure.__cause__ = raised
    failure.raised_at = failed[rank].origin
    return failure


def are_left_alone(
    members: Sequence[Member], *, finished: Mapping[int, Finished], failed: Mapping[int, Failed]
) -> bool:
    """Whether all ranks that ``failed`` did so after another one had ended, which they may have waited for. Clocks of hosts are not compared."""

    def had_ended(other: int, rank: int) -> bool:
        is_one_host = members[other].facts.hostname == members[rank].facts.hostname
        return not is_one_host or finished[other].at <= failed[rank].at

    return all(any(had_ended(other, rank) for other in finished) for rank in failed)


def is_hang(members: Sequence[Member], *, failed: Mapping[int, Failed], lost: Mapping[int, Exception]) -> bool:
    """Whether an attempt failed because a rank did not go on: what the ranks were doing then tells why."""
    if lost:
        return any(isinstance(error, TimeoutError) for error in lost.values())
    return _WAITED_IN_VAIN.search(failed[_first_to_fail(members, failed)].summary) is not None


def add_stacks(failure: TrainingFailedError, members: Sequence[Member], failed: Mapping[int, Failed]) -> str:
    """Add to an error what every rank is doing, or where it raised, in short. Gives the stacks of all threads."""
    ranks = collect_stacks(members, {rank: each.frames for rank, each in failed.items()})
    failure.add_note(f"\nWhat every rank was doing:\n{in_short(ranks)}")
    return in_full(ranks)


def _first_to_fail(members: Sequence[Member], failed: Mapping[int, Failed]) -> int:
    """The rank whose failure arrived first, or one on its host that failed before it. Clocks of hosts are not compared."""
    host = members[next(iter(failed))].facts.hostname
    return min((rank for rank in failed if members[rank].facts.hostname == host), key=lambda rank: failed[rank].at)


def out_of_step(member: Member, attempt: int, reports: int, ahead: int, reports_ahead: int) -> TrainingFailedError:
    """The error of a rank that returned although rank ``ahead`` reports more often."""
    error = OutOfStepError(
        f"rank {ahead} called report() {reports_ahead} times, rank {member.place.world_rank} returned after {reports}. "
        "Every rank must call report() equally often."
    )
    failure = _error(member, Cause.USER, str(error), attempt)
    failure.__cause__ = error
    return failure


def why(error: BaseException) -> str:
    """Why a worker was lost, on one line. Ray's errors run over many."""
    text = str(error)
    if "memory" in text.lower() and "OutOfMemory" in type(error).__name__ + text:
        return "out of memory. Give each worker more memory, or lower the batch size"
    if isinstance(error, TimeoutError):
        return f"it does not answer ({text})"
    if isinstance(error, ray.exceptions.RayActorError):
        return "its process ended: killed from outside, out of memory, or crashed in native code"
    return text.splitlines()[0] if text else repr(error)


def _is_gone(member: Member) -> bool:
    """Whether a worker that does not answer has lost its node, or is a process that was stopped."""
    if cluster.node_is_lost(member.facts.node_id):
        return True
    inspection = inspect_process(member.facts)
    concurrent.futures.wait([inspection], timeout=ALIVE_S)
    return inspection.done() and (pulse := pulse_in(inspection)) is not None and pulse.stopped


def _cause_of_loss(member: Member, error: Exception) -> Cause:
    return cause_of(error, node_lost=cluster.node_is_lost(member.facts.node_id))


def _returned_before(ranks: AbstractSet[int]) -> str:
    if not ranks:
        return ""
    gone = ", ".join(map(str, sorted(ranks)))
    return f" [rank {gone} had returned before: if this was a collective, every rank must take part in it]"


def _advice(member: Member, raised: BaseException) -> str:
    module = missing_module(raised)
    return "" if module is None else f". {advice(module, f'{member.facts.hostname} ({member.facts.node_ip})')}"


def _error(member: Member, cause: Cause, what: str, attempt: int, *, advice: str = "") -> TrainingFailedError:
    rank, facts = member.place.world_rank, member.facts
    return TrainingFailedError(
        f"rank {rank} (node {facts.node_ip}, pid {facts.pid}) {what} (attempt {attempt}){advice}",
        cause=cause,
        rank=rank,
        node=facts.node_ip,
        attempt=attempt,
    )


def _revived(failed: Failed, member: Member, attempt: int) -> BaseException:
    """What the training function raised. Where that was, and its own traceback, are notes."""
    error = revived(failed.error) or RuntimeError(failed.summary)
    facts = member.facts
    error.add_note(
        f"\nRaised on rank {member.place.world_rank} (node {facts.node_ip}, pid {facts.pid}), in attempt {attempt}, in the "
        f"training function:\n{failed.traceback.rstrip()}"
    )
    return error
