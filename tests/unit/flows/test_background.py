"""What people see is sent behind the training."""

from __future__ import annotations

import threading
import time

from trainlib.tasks._background import BackgroundSender


def test_nobody_waits_for_a_server_that_hangs():
    sender, answers = BackgroundSender(), threading.Event()
    started = time.monotonic()
    for _ in range(100):
        sender.send("progress", answers.wait)
    assert not sender.flush(0.05)
    assert time.monotonic() - started < 5
    answers.set()
    assert sender.flush(10)


def test_only_the_latest_state_is_sent_and_every_key_keeps_its_own():
    sender, go, sent = BackgroundSender(), threading.Event(), []
    sender.send("first", go.wait)
    for number in range(10):
        sender.send("progress", lambda number=number: sent.append(number))
    sender.send("link", lambda: sent.append("link"))
    go.set()
    assert sender.flush(10)
    assert sent == [9, "link"]


def test_a_call_that_fails_is_dropped_and_the_next_is_made():
    sender, sent = BackgroundSender(), []

    def fail() -> None:
        raise ConnectionError("the server is gone")

    sender.send("progress", fail)
    sender.flush(10)
    sender.send("progress", lambda: sent.append(1))
    assert sender.flush(10)
    assert sent == [1]
