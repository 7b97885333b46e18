"""A signal is not lost, even if Python swallows what its handler raises."""

from __future__ import annotations

import os
import signal

import pytest

from trainlib._execution.signals import raise_lost, remembered


class Swallows:
    """Has a destructor in which a signal arrives."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_destructor_swallows_is_raised_again(monkeypatch):
    # Whoever runs the tests in the background makes them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)
    with remembered():
        Swallows()
        with pytest.raises(KeyboardInterrupt):
            raise_lost()
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_without_a_signal_nothing_is_raised():
    with remembered():
        raise_lost()
    raise_lost()


def test_no_handler_is_replaced():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with remembered():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_an_event_loop_hears_of_the_signals_that_arrived_meanwhile():
    heard, wakes = os.pipe()
    os.set_blocking(wakes, False)
    handler = signal.signal(signal.SIGTERM, lambda number, frame: None)
    before = signal.set_wakeup_fd(wakes)
    try:
        with remembered():
            os.kill(os.getpid(), signal.SIGTERM)
        assert os.read(heard, 10) == bytes([signal.SIGTERM])
        assert signal.set_wakeup_fd(before) == wakes
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, handler)
        os.close(heard)
        os.close(wakes)
