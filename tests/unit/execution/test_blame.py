"""Which rank is to blame, when several have raised."""

from __future__ import annotations

import errno
import json
import pickle
import threading

import pytest

from trainlib._execution.blame import are_left_alone, failure_of
from trainlib._execution.causes import Cause
from trainlib._execution.events import Failed, Finished
from trainlib._execution.group import Member
from trainlib._execution.origin import Origin
from trainlib._execution.pool.idle import Kind
from trainlib._execution.ranks import rank_by_node
from trainlib._execution.worker import WorkerFacts
from trainlib.errors import TrainingFailedError


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


@pytest.mark.parametrize(
    ("hosts", "stopped_at", "is_excused"),
    [("aa", 9.0, True), ("aa", 11.0, False), ("ab", 11.0, True), ("aa", None, False)],
    ids=["after the other", "before the other", "on another host", "while the other still runs"],
)
def test_a_rank_that_fails_after_another_one_was_stopped_may_have_waited_for_it(hosts, stopped_at, is_excused):
    finished = {} if stopped_at is None else {1: Finished(b"", 3, at=stopped_at)}
    failed = {0: raised(RuntimeError("connection reset"), at=10.0)}
    assert are_left_alone(members(*hosts), finished=finished, failed=failed) is is_excused


def failure(error: Exception, rank: int = 1) -> TrainingFailedError:
    return failure_of(members("a", "b"), failed={rank: Failed.of(error)}, lost={}, returned=set(), attempt=3)


def raised_in_a_function(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


class OwnError(Exception):
    """Cannot be unpickled: it does not keep what it is made of."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")
        self.code = code
        self.lock = threading.Lock()  # cannot even be pickled


def test_what_was_raised_is_of_the_users_own_class_and_tells_where():
    found = failure(raised_in_a_function(OwnError(7, "no luck")))
    with pytest.raises(OwnError, match=r"no luck \(7\)") as caught:
        raise found.raised
    assert caught.value.code == 7
    (note,) = caught.value.__notes__
    assert "rank 1 (node b, pid 1), in attempt 3" in note
    assert "in raised_in_a_function" in note, "its own traceback"


def test_a_lost_worker_raised_nothing():
    lost = TrainingFailedError("rank 0 died", cause=Cause.WORKER, rank=0)
    assert lost.raised is lost
    not_started = TrainingFailedError("setting up torch raised ImportError", cause=Cause.USER)
    not_started.__cause__ = ImportError("no torch")
    assert not_started.raised is not_started, "it came from no rank's function"


def test_the_innermost_line_of_the_users_own_code_is_where_it_was_raised():
    def parses(text: str) -> None:
        json.loads(text)

    def raised_by(text: str) -> Origin | None:
        try:
            parses(text)
        except ValueError as error:
            return failure(error).raised_at

    line = parses.__code__.co_firstlineno + 1
    assert raised_by("{") == Origin("json.decoder.JSONDecodeError", __file__, line)
    assert raised_by("{") == raised_by("[1, "), "the message does not matter"
    assert failure(ValueError("found from outside")).raised_at is None
