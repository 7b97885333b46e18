"""What can happen to a training. Each fault is over when its function returns, unless processes have to be replaced."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.chaos.scene import Scene
from tests.chaos.store import FAILS

AWAY_S = 2.0
"""How long something is away, stopped or full."""


class Target(Protocol):
    """The training that something happens to."""

    scene: Scene
    storage: Path
    """The folder that has its checkpoints."""

    @property
    def driver(self) -> int:
        """The process that coordinates it."""

    def workers(self) -> list[int]:
        """The processes that train."""


Inject = Callable[[Target, random.Random], list[int]]
"""Lets it happen. Gives the workers that have to be replaced before the training can go on."""


@dataclass(frozen=True)
class Fault:
    """Something that can happen."""

    name: str
    inject: Inject
    storage: str | None = None
    """The kind of storage that it can happen to; None for any."""
    ends_driver: bool = False
    """Whether the driver's process ends by it, so that somebody has to start it again."""


def _signal_a_worker(number: signal.Signals) -> Inject:
    def inject(target: Target, rng: random.Random) -> list[int]:
        worker = rng.choice(target.workers())
        os.kill(worker, number)
        return [worker]

    return inject


def _kill_all_workers(target: Target, rng: random.Random) -> list[int]:
    workers = target.workers()
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    return workers


def _signal_the_driver(number: signal.Signals) -> Inject:
    def inject(target: Target, rng: random.Random) -> list[int]:
        os.kill(target.driver, number)
        return target.workers()

    return inject


def _stop_the_driver(target: Target, rng: random.Random) -> list[int]:
    os.kill(target.driver, signal.SIGSTOP)
    time.sleep(AWAY_S)
    os.kill(target.driver, signal.SIGCONT)
    return []


def _ask_ray(command: str) -> Inject:
    def inject(target: Target, rng: random.Random) -> list[int]:
        workers = target.workers()
        target.scene.ray.ask(command)
        return workers

    return inject


def _kill_prefect(target: Target, rng: random.Random) -> list[int]:
    target.scene.prefect.wait()  # it may still be starting after it was killed before
    target.scene.prefect.kill()
    target.scene.prefect.start()
    return []


def _stop_prefect(target: Target, rng: random.Random) -> list[int]:
    target.scene.prefect.wait()
    target.scene.prefect.signal(signal.SIGSTOP)
    time.sleep(AWAY_S)
    target.scene.prefect.signal(signal.SIGCONT)
    return []


def _kill_mlflow(target: Target, rng: random.Random) -> list[int]:
    target.scene.mlflow.kill()
    target.scene.mlflow.start()
    return []


def _stop_mlflow(target: Target, rng: random.Random) -> list[int]:
    target.scene.mlflow.hang()
    time.sleep(AWAY_S)
    target.scene.mlflow.go_on()
    return []


def _fail_uploads(target: Target, rng: random.Random) -> list[int]:
    fails = target.storage / FAILS
    fails.touch()
    time.sleep(AWAY_S)
    fails.unlink()
    return []


def _fill_the_disk(target: Target, rng: random.Random) -> list[int]:
    """No process of the training can write to a file. It needs no mount and no rights: a limit that both sides may lower
    and raise again takes the place of a disk without space, and the error is EFBIG instead of ENOSPC."""
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in (target.driver, *target.workers())}
    for pid, (_, hard) in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    time.sleep(AWAY_S)
    for pid, before in limits.items():
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        except ProcessLookupError:
            continue  # a worker that could not go on
    return []


DISK, STORE = "disk", "store"
"""The kinds of storage: a folder, and an fsspec store."""

FAULTS = (
    Fault("worker killed", _signal_a_worker(signal.SIGKILL)),
    Fault("worker stopped", _signal_a_worker(signal.SIGSTOP)),
    Fault("all workers killed", _kill_all_workers),
    Fault("driver killed", _signal_the_driver(signal.SIGKILL), ends_driver=True),
    Fault("driver terminated", _signal_the_driver(signal.SIGTERM), ends_driver=True),
    Fault("driver stopped for a while", _stop_the_driver),
    Fault("raylet killed", _ask_ray("lose_node")),
    Fault("GCS killed", _ask_ray("lose_gcs")),
    Fault("Prefect killed", _kill_prefect),
    Fault("Prefect stopped for a while", _stop_prefect),
    Fault("MLflow killed", _kill_mlflow),
    Fault("MLflow stopped for a while", _stop_mlflow),
    Fault("store fails for a while", _fail_uploads, storage=STORE),
    Fault("disk full for a while", _fill_the_disk, storage=DISK),
)
