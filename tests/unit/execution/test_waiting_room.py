"""How many checkpoints may wait on a worker's disk, and that report() waits when there are more."""

from __future__ import annotations

import threading
import time

import pytest

from trainlib import Checkpoint, CheckpointConfig
from trainlib._execution.events import Note, Report
from trainlib._execution.outbox import Outbox
from trainlib._execution.waiting_room import WaitingRoom
from trainlib._execution.worker_session import Assignment, StopTraining, WorkerSession
from trainlib.session import TrainContext

MIB = 1024**2


def test_the_room_is_full_by_number():
    room = WaitingRoom(CheckpointConfig(max_staged=2))
    room.enter(5, 1)
    assert not room.is_full
    room.enter(6, 1)
    assert room.is_full
    room.leave(4)
    assert room.is_full
    room.leave(5)
    assert not room.is_full


def test_the_room_is_full_by_size_but_one_may_always_wait():
    room = WaitingRoom(CheckpointConfig(max_staged_gib=10 / 1024))
    assert not room.is_full
    room.enter(0, 6 * MIB)
    assert not room.is_full
    room.enter(1, 6 * MIB)
    assert room.is_full
    room.leave(1)
    room.enter(2, 100 * MIB)
    assert room.is_full
    room.leave(2)
    assert not room.is_full


@pytest.fixture
def session(tmp_path) -> tuple[WorkerSession, Outbox]:
    assignment = Assignment(
        context=TrainContext(),
        iterations_done=0,
        next_checkpoint=0,
        resume_from=None,
        checkpoint_config=CheckpointConfig(max_staged=2),
        staging=str(tmp_path),
        shares_disk=True,
        in_step=False,
        environment={},
        import_path=[],
    )
    outbox = Outbox()
    return WorkerSession(assignment, outbox), outbox


def reporting(session: WorkerSession, times: int) -> tuple[threading.Thread, list[int]]:
    made: list[int] = []

    def run() -> None:
        try:
            for number in range(times):
                session.report({"n": number}, Checkpoint.from_dict({"n": number}))
                made.append(number)
        except StopTraining:
            made.append(-1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, made


def until(what) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_report_waits_for_the_store_and_says_so_once(session):
    worker, outbox = session
    thread, made = reporting(worker, 6)
    until(lambda: len(made) == 2)
    time.sleep(0.1)
    assert made == [0, 1], "two wait for the store, so the third report waits too"
    worker.settle_checkpoints(0)
    until(lambda: len(made) == 3)
    for newest in range(1, 6):
        worker.settle_checkpoints(newest)
        time.sleep(0.02)
    thread.join(10)
    assert made == list(range(6))
    events = outbox.drain(0.1)
    assert [event.iteration for event in events if isinstance(event, Report)] == [1, 2, 3, 4, 5, 6]
    (note,) = [event for event in events if isinstance(event, Note)]
    assert "the store is slower than the training" in note.text


def test_a_training_that_waits_for_the_store_can_be_stopped(session):
    worker, _ = session
    thread, made = reporting(worker, 3)
    until(lambda: len(made) == 2)
    worker.stop(0)
    thread.join(10)
    assert made == [0, 1, -1]
