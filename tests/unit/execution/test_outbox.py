"""Events leave a worker in order, and prints become events."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from trainlib._execution import outbox
from trainlib._execution.events import Finished, Output, Report, WorkerEvent
from trainlib._execution.outbox import Outbox, prints_into


def test_events_come_in_order_and_once():
    box = Outbox()
    for number in range(3):
        box.put(Output(str(number), False))
    assert [event.text for event in box.drain(0.0)] == ["0", "1", "2"]
    assert box.drain(0.0) == []


def test_a_waiting_poll_is_woken_by_an_event():
    box = Outbox()
    threading.Timer(0.1, box.put, (Finished(b"", 0, 1.0),)).start()
    started = time.monotonic()
    assert box.drain(10.0) == [Finished(b"", 0, 1.0)]
    assert time.monotonic() - started < 5.0


def drained(*events: WorkerEvent) -> list[WorkerEvent]:
    """What a poll gets that begins with the first of the events."""
    box = Outbox(gathers_reports=True)

    def put() -> None:
        for event in events:
            box.put(event)
            time.sleep(0.05)

    putting = threading.Thread(target=put)
    putting.start()
    found = box.drain(10.0)
    putting.join()
    return found


def report(iteration: int, checkpoint: str | None = None) -> Report:
    return Report(iteration, {"loss": 1.0}, checkpoint, 0.0, 0.0)  # type: ignore[arg-type]


def test_reports_for_which_nobody_waits_are_handed_over_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(outbox, "SELDOM_S", 2.0)
    assert drained(report(1), report(2)) == [report(1), report(2)]


@pytest.mark.parametrize(
    "event", [Finished(b"", 0, 1.0), report(2, "saved"), Output("line", False)], ids=lambda e: type(e).__name__
)
def test_other_events_wait_for_no_report(monkeypatch, event: WorkerEvent):
    """And take those along that were made before them."""
    monkeypatch.setattr(outbox, "SELDOM_S", 10_000.0)
    assert drained(report(1), event) == [report(1), event]


def test_prints_become_lines():
    box = Outbox()
    before = sys.stdout, sys.stderr
    with prints_into(box):
        print("one\ntwo")
        print("bar 10%\rbar 20%")
        print("no newline", end="")
        print("problem", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == before
    events = box.drain(0.0)
    assert [event.text for event in events if not event.is_error] == ["one", "two", "bar 20%", "no newline"]
    assert [event.text for event in events if event.is_error] == ["problem"]


def test_of_a_progress_bar_the_last_state_is_shown_whichever_way_it_is_drawn():
    box = Outbox()
    with prints_into(box):
        for percent in (10, 20, 30):
            print(f"\rtqdm {percent}%", end="")
        print()
        for percent in (10, 20, 30):
            print(f"keras {percent}%", end="\r")
        print()
        print("a file with\r")
        for percent in (10, 20):
            print(f"\rin pieces {percent}", end="")
            print("%", end="")
    assert [event.text for event in box.drain(0.0)] == ["tqdm 30%", "keras 30%", "a file with", "in pieces 20%"]


def test_an_update_of_a_progress_bar_costs_the_same_however_many_came_before():
    """What is kept of the line is what would have to be gone through at the next update."""
    box = Outbox()
    with prints_into(box):
        for step in range(1000):
            print(f"\r{step}/1000 [####]", end="")
            assert sum(map(len, sys.stdout._pieces)) < 20
    assert [event.text for event in box.drain(0.0)] == ["999/1000 [####]"]
