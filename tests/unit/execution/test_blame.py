"""Which rank is to blame, when several have raised."""

from __future__ import annotations

import errno
import pickle

from trainlib._execution.blame import failure_of
from trainlib._execution.causes import Cause
from trainlib._execution.events import Failed
from trainlib._execution.group import Member
from trainlib._execution.pool import Kind
from trainlib._execution.ranks import rank_by_node
from trainlib._execution.worker import WorkerFacts


def members(*hosts: str) -> list[Member]:
    """One rank on each of these hosts."""
    facts = [WorkerFacts(node_id=host, node_ip=host, hostname=host, pid=rank) for rank, host in enumerate(hosts)]
    kind = Kind(node_id="", threads=1, state_module=None, session=None)
    return [Member(None, kind, place, facts[index]) for index, place in rank_by_node(list(hosts))]


def raised(error: Exception, at: float) -> Failed:
    return Failed(pickle.dumps(error), f"{type(error).__name__}: {error}", "", (), at)


def blamed(hosts: list[str], failed: dict[int, Failed]) -> tuple[int | None, Cause]:
    failure = failure_of(members(*hosts), failed=failed, lost={}, returned=set(), attempt=1)
    return failure.rank, failure.cause


def test_on_one_host_the_first_by_its_clock_is_to_blame():
    failed = {1: raised(RuntimeError("connection reset"), at=10.2), 0: raised(ValueError("a bug"), at=10.1)}
    assert blamed(["a", "a"], failed) == (0, Cause.USER)


def test_clocks_of_hosts_are_not_compared():
    failed = {1: raised(ValueError("a bug"), at=9000.0), 0: raised(RuntimeError("connection reset"), at=3.0)}
    assert blamed(["a", "b"], failed) == (1, Cause.USER), "it was heard of first"


def test_no_code_is_to_blame_for_a_full_disk():
    failed = {0: raised(OSError(errno.ENOSPC, "No space left on device"), at=1.0)}
    assert blamed(["a"], failed) == (0, Cause.STORAGE)
