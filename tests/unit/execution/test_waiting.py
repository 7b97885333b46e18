"""Waiting that can be cancelled."""

from __future__ import annotations

import threading
import time

import pytest

from trainlib._execution.waiting import (
    CancelledInThreadError,
    Interruption,
    SuspendedInThreadError,
    cancelled_by,
    pause,
    raise_if_cancelled,
)


def test_a_pause_lasts_as_long_as_it_is_asked_to():
    before = time.monotonic()
    pause(0.05)
    assert time.monotonic() - before >= 0.05
    pause(0.0)


def test_whoever_cancels_a_thread_ends_its_pause():
    event = Interruption()
    threading.Timer(0.05, event.set).start()
    before = time.monotonic()
    with cancelled_by(event), pytest.raises(CancelledInThreadError):
        pause(60.0)
    assert time.monotonic() - before < 30


def test_whoever_suspends_a_thread_is_told_apart():
    event = Interruption()
    event.suspend()
    with cancelled_by(event), pytest.raises(SuspendedInThreadError):
        raise_if_cancelled()
