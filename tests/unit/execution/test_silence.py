"""A rank that does not answer is lost when it is stopped or does nothing, and is waited for when it works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Future

import pytest

from trainlib._execution import silence
from trainlib._execution.silence import Pulse, SilenceWatch
from trainlib._execution.worker import WorkerFacts

WORKER = WorkerFacts(node_id="a", node_ip="127.0.0.1", hostname="a", pid=1)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when it is told to."""
    now = [1000.0]
    monkeypatch.setattr(silence.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def watch(*pulses: Pulse | None) -> SilenceWatch:
    """A watch over one rank, which looks each time as the next of these."""
    looks = iter(pulses)

    def look(worker: WorkerFacts) -> Future:
        found: Future = Future()
        found.set_result(next(looks))
        return found

    return SilenceWatch([WORKER], look)


def test_one_that_answers_is_not_even_looked_at(clock):
    watching = watch()
    for _ in range(10):
        watching.asked(0)
        clock(silence.CHECK_EVERY_S)
        watching.answered(0)
        assert watching.lost() == {}


def test_one_that_is_stopped_is_lost(clock):
    watching = watch(Pulse(stopped=True, cpu_s=3.0))
    watching.asked(0)
    clock(silence.SILENT_S + 1)
    assert "stopped" in str(watching.lost()[0])


def test_one_that_works_is_waited_for(clock):
    watching = watch(*(Pulse(stopped=False, cpu_s=100.0 * second) for second in range(100)))
    watching.asked(0)
    for _ in range(50):
        clock(silence.IDLE_S / 2)
        assert watching.lost() == {}


def test_one_that_does_nothing_is_lost_after_a_while(clock):
    watching = watch(*[Pulse(stopped=False, cpu_s=3.0)] * 3)
    watching.asked(0)
    clock(silence.SILENT_S + 1)
    assert watching.lost() == {}
    clock(silence.IDLE_S - 1)
    assert watching.lost() == {}
    clock(silence.CHECK_EVERY_S)
    assert "idle" in str(watching.lost()[0])


def test_one_that_cannot_be_looked_at_is_left_to_ray(clock):
    watching = watch(None)
    watching.asked(0)
    clock(silence.SILENT_S + 1)
    assert watching.lost() == {}


def test_a_real_process_is_seen_to_be_stopped():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not silence._inspect(process.pid).stopped
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert silence._inspect(process.pid).stopped
    finally:
        process.kill()
        process.wait()
    assert silence._inspect(process.pid) is None
