"""Ranks that no longer answer: still at work, or gone?

A worker answers from its own interpreter, which a training function may keep busy for a while. So one that
is silent is looked at from outside, on its node: a stopped process is lost, and so is one that does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainlib.execution.waiting import gather
from trainlib.execution.worker import WorkerFacts

# Answers come twice a second from a healthy worker.
SILENT_S = 5.0
# A silent process that has not used the processor for so long will not come back.
IDLE_S = 60.0
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
    """When it was last seen to have used the processor."""


class SilenceWatch:
    """Finds the ranks that have gone without Ray's knowing it."""

    def __init__(self, workers: Sequence[WorkerFacts], pulse: Callable[[WorkerFacts], Pulse | None]) -> None:
        self._workers = workers
        self._pulse = pulse
        self._waiting: dict[int, _Silence] = {}
        self._checked_at = time.monotonic()

    def asked(self, rank: int) -> None:
        """A question is on its way to a rank."""
        self._waiting[rank] = _Silence(since=time.monotonic())

    def answered(self, rank: int) -> None:
        """Its answer is here, or Ray knows that there will be none."""
        self._waiting.pop(rank, None)

    def lost(self) -> dict[int, TimeoutError]:
        """The ranks that have gone, and why it is thought so."""
        now = time.monotonic()
        if now - self._checked_at < CHECK_EVERY_S:
            return {}
        self._checked_at = now
        silent = [(rank, silence) for rank, silence in list(self._waiting.items()) if now - silence.since > SILENT_S]
        return {rank: TimeoutError(problem) for rank, silence in silent if (problem := self._problem(rank, silence))}

    def _problem(self, rank: int, silence: _Silence) -> str | None:
        pulse = self._pulse(self._workers[rank])
        now = time.monotonic()
        if pulse is None:
            return None
        if pulse.stopped:
            return f"its process was stopped, silent for {now - silence.since:.0f} s"
        if silence.cpu_s is None or pulse.cpu_s - silence.cpu_s > 0.1:
            silence.cpu_s, silence.busy_at = pulse.cpu_s, now
        elif now - silence.busy_at > IDLE_S:
            return f"silent for {now - silence.since:.0f} s and idle"
        return None


def pulse_of(worker: WorkerFacts) -> Pulse | None:
    """How a worker's process is, asked on its node. None when that cannot be known: Ray will find out why."""
    if worker.node_id == ray.get_runtime_context().get_node_id():
        return _look_at(worker.pid)
    there = NodeAffinitySchedulingStrategy(worker.node_id, soft=False)
    look = ray.remote(_look_at).options(num_cpus=0, scheduling_strategy=there, max_retries=0)
    try:
        return gather([look.remote(worker.pid)], timeout=CHECK_EVERY_S)[0]  # type: ignore[no-any-return]
    except (ray.exceptions.RayError, TimeoutError):
        return None


def _look_at(pid: int) -> Pulse | None:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return Pulse(process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP), times.user + times.system)
    except psutil.Error:
        return None
