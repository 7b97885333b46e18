"""Events leave a worker in order, and prints become events."""

from __future__ import annotations

import sys
import threading
import time

from trainlib._execution.events import Finished, Output
from trainlib._execution.outbox import Outbox, prints_into


def test_events_come_in_order_and_once():
    outbox = Outbox()
    for number in range(3):
        outbox.put(Output(str(number), False))
    assert [event.text for event in outbox.drain(0.0)] == ["0", "1", "2"]
    assert outbox.drain(0.0) == []


def test_a_waiting_poll_is_woken_by_an_event():
    outbox = Outbox()
    threading.Timer(0.1, outbox.put, (Finished(b"", 0, 1.0),)).start()
    started = time.monotonic()
    assert outbox.drain(10.0) == [Finished(b"", 0, 1.0)]
    assert time.monotonic() - started < 5.0


def test_prints_become_lines():
    outbox = Outbox()
    before = sys.stdout, sys.stderr
    with prints_into(outbox):
        print("one\ntwo")
        print("bar 10%\rbar 20%")
        print("no newline", end="")
        print("problem", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == before
    events = outbox.drain(0.0)
    assert [event.text for event in events if not event.is_error] == ["one", "two", "bar 20%", "no newline"]
    assert [event.text for event in events if event.is_error] == ["problem"]


def test_of_a_progress_bar_the_last_state_is_shown_whichever_way_it_is_drawn():
    outbox = Outbox()
    with prints_into(outbox):
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
    assert [event.text for event in outbox.drain(0.0)] == ["tqdm 30%", "keras 30%", "a file with", "in pieces 20%"]


def test_an_update_of_a_progress_bar_costs_the_same_however_many_came_before():
    """What is kept of the line is what would have to be gone through at the next update."""
    outbox = Outbox()
    with prints_into(outbox):
        for step in range(1000):
            print(f"\r{step}/1000 [####]", end="")
            assert sum(map(len, sys.stdout._pieces)) < 20
    assert [event.text for event in outbox.drain(0.0)] == ["999/1000 [####]"]
