"""A library cannot replace a signal handler for good."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

from trainlib._execution.signal_handlers import kept


def test_a_handler_that_is_replaced_in_c_and_in_another_thread_is_put_back():
    received = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: received.append(number))

    def replace() -> None:
        with kept(signal.SIGUSR2):
            ctypes.CDLL(None).signal(signal.SIGUSR2, ctypes.c_void_p(signal.SIG_IGN))
            os.kill(os.getpid(), signal.SIGUSR2)

    try:
        thread = threading.Thread(target=replace)
        thread.start()
        thread.join()
        assert received == [], "it was replaced in the block"
        os.kill(os.getpid(), signal.SIGUSR2)
        assert received == [signal.SIGUSR2]
    finally:
        signal.signal(signal.SIGUSR2, before)
