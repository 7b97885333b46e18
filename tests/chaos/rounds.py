"""Carries out a plan: starts the training, lets its faults happen, starts it again where it has ended, and waits."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests import process_logs
from tests.chaos import account, victims
from tests.chaos.account import Account, Witness
from tests.chaos.faults import STORE
from tests.chaos.plans import LEAD, Plan, Strike
from tests.chaos.scene import Scene

OVERCOME_S = 300.0
"""A training that has not gone on after so long hangs."""

Say = Callable[[str], None]


class HangsError(Exception):
    """A training does not go on."""


@dataclass
class Progress:
    """What the workers of a training tell: which steps they have made, from where on, in which process."""

    path: Path
    latest: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """The last step and the process of each rank of each trial."""
    starts: list[tuple[int, int]] = field(default_factory=list)
    """The trial, and the first step, of each start of a rank 0, in order."""
    made: int = 0
    """How many steps all ranks 0 have made."""
    pids: set[int] = field(default_factory=set)
    """All processes that there have been."""

    def listen(self) -> None:
        """Take in what workers send, in a thread, until :meth:`close`."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Take in nothing more."""
        self._socket.shutdown(socket.SHUT_RD)

    def _listen(self) -> None:
        while message := self._socket.recv(100):
            trial, rank, start, step, pid = map(int, message.split())
            if rank == 0:
                self.made += 1
                if pid not in self.pids:
                    self.starts.append((trial, start))
            self.pids.add(pid)
            self.latest[trial, rank] = step, pid


class Round:
    """One training with its faults. It is the target of the faults."""

    def __init__(self, plan: Plan, scene: Scene) -> None:
        self.plan = plan
        self.scene = scene
        self.folder = scene.folder / plan.name
        self.folder.mkdir()
        self.storage = self.folder / "storage"
        self.storage.mkdir()
        self._log = self.folder / "driver.log"
        self._log.touch()
        process_logs.follow(f"the driver of {plan}", self._log)
        self._progress = Progress(self.folder / "progress")
        self._drivers: list[subprocess.Popen[bytes]] = []
        self._witness = Witness(plan=plan, folder=self.folder, storage=self.storage)
        self._ranks = [
            (trial, rank)
            for trial in victims.trials_of(plan.victim)
            for rank in range(1 if plan.victim == "sweep" else 2)
        ]

    # -- as faults see it -------------------------------------------------------------------------------

    @property
    def driver(self) -> int:
        return self._drivers[-1].pid

    def workers(self) -> list[int]:
        return [pid for _, pid in self._progress.latest.values() if psutil.pid_exists(pid)]

    # -- what happens -----------------------------------------------------------------------------------

    def run(self, say: Say) -> Account:
        """Carry the plan out. Gives the account."""
        started = time.monotonic()
        rng = random.Random(self.plan.seed)
        self._progress.listen()
        try:
            self._open_gate(self.plan.strikes[0].step)
            self._start()
            self._wait_until(lambda: self._has_reached(self.plan.strikes[0].step), "the start")
            for number, strike in enumerate(self.plan.strikes):
                self._strike(strike, number, rng, say)
        except HangsError as error:
            self._witness.problems.append(str(error))
            say(f"  {error}")
        finally:
            self._end_drivers()
            self._progress.close()
        witness = self._witness
        witness.starts, witness.pids = self._progress.starts, self._progress.pids
        witness.sessions = [driver.pid for driver in self._drivers]
        witness.made = self._progress.made
        witness.seconds = time.monotonic() - started
        return account.take(witness, self.scene)

    def _strike(self, strike: Strike, number: int, rng: random.Random, say: Say) -> None:
        """Let a fault happen, and wait until the training has got over it, or to its end, if it was the last."""
        following = self.plan.strikes[number + 1 :]
        self._witness.saw_checkpoints(self.scene, len(self._progress.starts))
        began, drivers = time.monotonic(), len(self._drivers)
        self._open_gate(strike.step + LEAD)  # so that it trains, reports and saves while it happens
        time.sleep(rng.uniform(0, LEAD * victims.STEP_S))
        replaced = strike.fault.inject(self, rng)
        self._open_gate(following[0].step if following else self.plan.steps)
        if following:
            self._wait_until(
                lambda: self._has_reached(following[0].step) and not self._still_has(replaced), strike.fault.name
            )
        else:
            self._wait_until(lambda: self._drivers[-1].poll() == 0, strike.fault.name)
        again = len(self._drivers) - drivers
        say(
            f"  step {strike.step:3d}  {strike.fault.name:28s} {'over' if following else 'ended'} after "
            f"{time.monotonic() - began:5.1f} s" + (f", script started {again} more time(s)" if again else "")
        )
        if again > strike.fault.ends_driver:
            self._witness.gave_up += again - strike.fault.ends_driver

    def _has_reached(self, step: int) -> bool:
        latest = self._progress.latest
        return all(rank in latest and latest[rank][0] >= step for rank in self._ranks)

    def _still_has(self, replaced: list[int]) -> bool:
        return any(pid in replaced for _, pid in self._progress.latest.values())

    def _open_gate(self, step: int) -> None:
        aside = self.folder / "gate.new"
        aside.write_text(str(step))
        os.replace(aside, self.folder / "gate")

    def _wait_until(self, condition: Callable[[], bool], after: str) -> None:
        """Wait, and start the script again whenever it has ended."""
        deadline = time.monotonic() + OVERCOME_S
        while not condition():
            code = self._drivers[-1].poll()
            if code == 0:
                raise HangsError(f"the script ended too early, after: {after}")
            if code is not None:
                self._start()
            if time.monotonic() > deadline:
                raise HangsError(f"nothing went on for {OVERCOME_S:g} s after: {after}")
            time.sleep(0.02)

    # -- the script -------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the script. Its output goes through a pipe: it has a terminal, even when its disk is full."""
        scheme = "chaos://" if self.plan.storage == STORE else ""
        arguments = [
            self.plan.victim,
            self.plan.name,
            str(self.folder),
            f"{scheme}{self.storage}",
            str(self.plan.steps),
        ]
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.victims", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.scene.environment,
            start_new_session=True,
        )
        threading.Thread(target=self._copy_output, args=(driver,), daemon=True).start()
        self._drivers.append(driver)

    def _copy_output(self, driver: subprocess.Popen[bytes]) -> None:
        assert driver.stdout is not None
        with open(self._log, "ab") as log:
            shutil.copyfileobj(driver.stdout, log)

    def _end_drivers(self) -> None:
        for driver in self._drivers:
            if driver.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()


def run_all(plans: Iterable[Plan], scene: Scene, say: Say) -> Iterator[Account]:
    """Carry plans out one after the other, and tell how it goes."""
    for plan in plans:
        say(str(plan))
        outcome = Round(plan, scene).run(say)
        for problem in outcome.problems:
            say(f"  WRONG: {problem}")
        yield outcome
