"""Ranks that no longer answer: still at work, or gone?

A worker answers from its own interpreter, which a training function may keep busy for a while. So one that
is silent is inspected from outside, on its node: a stopped process is lost, and so is one that does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import psutil

from trainlib._execution.on_node import call_on_node
from trainlib._execution.worker import WorkerFacts

# Answers come twice a second from a healthy worker.
SILENT_S = 5.0
# A silent process that has done nothing for so long will not come back. It may well be silent for minutes: while
# TensorFlow waits for the other workers to join, it lets no Python run.
IDLE_S = 1800.0
# What a process uses that does nothing, at once now and then, and all the time.
IDLE_CPU_S = 0.5
IDLE_SHARE = 0.03
CHECK_EVERY_S = 2.0


@dataclass(frozen=True)
class Pulse:
    """How a process looks from outside."""

    stopped: bool
    cpu_s: float
    """Processor time that it has used."""


@dataclass
class _Silence:
    since: float
    """When the question was asked that has not been answered."""
    cpu_s: float | None = None
    busy_at: float = 0.0
    """When it was last seen at work, and ``cpu_s`` is what it had used by then."""
    inspection: Future[Any] | None = None
    """The inspection of its process that is under way."""


class SilenceWatch:
    """Finds the ranks that have gone without Ray's knowing it."""

    def __init__(self, workers: Sequence[WorkerFacts], inspect: Callable[[WorkerFacts], Future[Any]]) -> None:
        self._workers = workers
        self._inspect = inspect
        self._waiting: dict[int, _Silence] = {}
        self._checked_at = time.monotonic()

    def asked(self, rank: int) -> None:
        """A question is on its way to a rank."""
        self._waiting[rank] = _Silence(since=time.monotonic())

    def answered(self, rank: int) -> None:
        """Its answer is here, or Ray knows that there will be none."""
        self._waiting.pop(rank, None)

    def lost(self, idle_s: float = IDLE_S) -> dict[int, TimeoutError]:
        """The ranks that are gone, each with the reason for thinking so. Does not wait: inspections end in later calls."""
        now = time.monotonic()
        if now - self._checked_at < CHECK_EVERY_S:
            return {}
        self._checked_at = now
        lost = {}
        for rank, silence in list(self._waiting.items()):
            if now - silence.since > SILENT_S:
                inspection = silence.inspection = silence.inspection or self._inspect(self._workers[rank])
                if inspection.done():
                    silence.inspection = None
                    if problem := _problem(silence, pulse_in(inspection), now, idle_s):
                        lost[rank] = TimeoutError(problem)
        return lost


def _problem(silence: _Silence, pulse: Pulse | None, now: float, idle_s: float) -> str | None:
    """Why a silent rank is given up, if it is."""
    if pulse is None:
        return None
    if pulse.stopped:
        return f"its process was stopped, silent for {now - silence.since:.0f} s"
    idle_for = now - silence.busy_at
    if silence.cpu_s is None or pulse.cpu_s - silence.cpu_s > IDLE_CPU_S + IDLE_SHARE * idle_for:
        silence.cpu_s, silence.busy_at = pulse.cpu_s, now
    elif idle_for > idle_s:
        return f"silent for {now - silence.since:.0f} s and idle"
    return None


def inspect_process(worker: WorkerFacts) -> Future[Any]:
    """Inspect a worker's process on its node, in the background; :func:`pulse_in` gives what was found."""
    return call_on_node(worker, _inspect)


def pulse_in(inspection: Future[Any]) -> Pulse | None:
    """What an inspection found. None if it failed: Ray will find out why."""
    return None if inspection.exception() is not None else inspection.result()


def _inspect(pid: int) -> Pulse | None:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        # A process that a debugger holds has another status, and is left alone.
        return Pulse(process.status() == psutil.STATUS_STOPPED, times.user + times.system)
    except psutil.Error:
        return None
