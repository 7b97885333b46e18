"""Which process owns a run. At any time it is one, however many want to be, on however many machines.

A process becomes the owner number *n* of a run by a param of that number: MLflow lets nobody change a param, so of two
processes that find the same owner gone, one is the next. The owner moves a counter for as long as it lives. Whoever
wants to continue the run watches it: clocks of different machines are not compared.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from trainlib._process import Process
from trainlib._registry import tags
from trainlib._registry.turns import write_once
from trainlib._retry_lines import without_retry_lines
from trainlib.errors import RunInUseError, RunLostError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = [
    "Lease",
    "Occupancy",
    "Owner",
    "Pulse",
    "claim",
    "in_use_error",
    "is_given_up",
    "occupancy",
    "release",
    "watch",
]

BEAT_S = 15.0
"""How often an owner moves its counter."""
EXPIRES_S = 45.0
"""How long a counter may stand still before its owner counts as gone."""
_POLL_S = 1.0
_SLOW_S = 5.0


@dataclass(frozen=True)
class Owner:
    """The process that owns a run, or owned it last."""

    number: int
    """How many processes have claimed the run, with this one. 0 for the creator of a run that has no name."""
    driver: Process | None
    """The process. None for a run that no trainlib made."""

    @classmethod
    def of(cls, run: Run) -> Owner:
        numbers = [number for param in run.data.params if (number := tags.owner_number(param)) is not None]
        if numbers:
            return cls(max(numbers), Process.parse(run.data.params[tags.owner(max(numbers))]))
        text = run.data.tags.get(tags.DRIVER)
        return cls(0, Process.parse(text) if text is not None else None)


@dataclass(frozen=True)
class Pulse:
    """What moves while the owner of a run lives."""

    owner: int
    heartbeat: str | None

    @classmethod
    def of(cls, run: Run) -> Pulse:
        return cls(Owner.of(run).number, run.data.tags.get(tags.HEARTBEAT))


class Occupancy(Enum):
    """Whether a process works on a run, as far as can be told at once."""

    FREE = auto()
    """Its last owner has ended it."""
    GONE = auto()
    """Its owner was killed."""
    LIVE = auto()
    """Its owner lives."""
    UNKNOWN = auto()
    """Its owner is on another machine: only its counter can tell."""


def occupancy(run: Run) -> Occupancy:
    """Whether a process works on a run, from what MLflow has of it."""
    owner, held = Owner.of(run), run.data.tags
    ended = run.info.status != "RUNNING" if owner.number == 0 else held.get(tags.RELEASED) == str(owner.number)
    if ended or owner.driver is None:
        return Occupancy.FREE
    if owner.driver == Process.this():
        return Occupancy.LIVE if run.info.run_id in _held else Occupancy.GONE
    if owner.driver.is_gone:
        return Occupancy.GONE
    if owner.driver.is_here or tags.FORMAT not in held:  # an older trainlib moves no counter
        return Occupancy.LIVE
    return Occupancy.UNKNOWN


def watch(client: MlflowClient, run: Run) -> Pulse | None:
    """Watch a run whose owner is on another machine. Gives its pulse if it stood still for :data:`EXPIRES_S`, else None.

    Time in which MLflow did not answer does not count: the owner could not move its counter either.
    """
    seen, since = Pulse.of(run), time.monotonic()
    while time.monotonic() - since < EXPIRES_S:
        time.sleep(_POLL_S)
        asked = time.monotonic()
        now = client.get_run(run.info.run_id)
        if Pulse.of(now) != seen or occupancy(now) is not Occupancy.UNKNOWN:
            return None
        if time.monotonic() - asked > _SLOW_S:
            since = time.monotonic()
    return seen


def claim(client: MlflowClient, run_id: str, number: int) -> bool:
    """Become the owner of that number of a run. Gives False if another process is, or if the run was deleted."""
    return write_once(client, run_id, tags.owner(number))


def is_given_up(run: Run) -> bool:
    """Whether a new run is nobody's: another process has claimed it to keep its creator from it, and is about to delete it."""
    owner, creator = Owner.of(run), run.data.tags.get(tags.DRIVER)
    return owner.number == 1 and creator is not None and owner.driver != Process.parse(creator)


def release(client: MlflowClient, run_id: str, number: int) -> None:
    """Let the run go: whoever comes next need not find out whether the owner of that number lives."""
    if number > 0:  # otherwise the status of the run tells
        client.set_tag(run_id, tags.RELEASED, str(number))


def in_use_error(run: Run) -> RunInUseError:
    """The error for a run that another process owns. It says who, and where."""
    driver = Owner.of(run).driver
    who = f"process {driver.pid} on {driver.host}" if driver is not None else "another process"
    return RunInUseError(
        f"the training {run.info.run_name!r} (MLflow run {run.info.run_id}) is being run by {who}. Wait for it, end it, or "
        "give this one another RunConfig.name."
    )


class Lease:
    """A process's hold on a run. A thread moves the counter, and notices when another process has taken the run over."""

    def __init__(self, client: MlflowClient, run_id: str, number: int) -> None:
        """
        Args:
            client: A client of the store that the run is in.
            run_id: The run.
            number: Which owner of the run this process is.
        """
        self.run_id = run_id
        self.number = number
        self._client = client
        self._count = 0
        self._taken_by: Process | None = None
        self._renewed = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="run-lease", daemon=True)
        _held[run_id] = self
        self._thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether another process is known to own the run now. Then this one must not write to it."""
        return self._taken_by is not None

    def require(self) -> None:
        """Raise an error if another process owns the run now.

        After a long pause, such as that of a suspended machine, MLflow is asked: another process may have found the
        counter standing still.

        Raises:
            RunLostError: another process does.
        """
        if not self.is_lost and time.monotonic() - self._renewed > EXPIRES_S:
            self._renew()
        if self._taken_by is not None:
            raise RunLostError(
                f"this process has not been heard of for {EXPIRES_S:g} s, and process {self._taken_by.pid} on "
                f"{self._taken_by.host} has taken over MLflow run {self.run_id}. It goes on there; this process stops."
            )

    def release(self) -> None:
        """Let the run go, after it has ended."""
        self._end()
        if not self.is_lost:
            with (
                suppress(Exception),
                without_retry_lines(),
            ):  # the training has ended well; at worst, the next owner has to find out
                release(self._client, self.run_id, self.number)

    def abandon(self) -> None:
        """Stop moving the counter, without a word to MLflow: as if the process had been killed."""
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._thread.join(_SLOW_S)  # it may be in a call that MLflow does not answer
        if _held.get(self.run_id) is self:
            del _held[self.run_id]

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            self._renew()
            if self.is_lost:
                return

    @without_retry_lines()
    def _renew(self) -> None:
        try:
            owner = Owner.of(self._client.get_run(self.run_id))
            if owner.number != self.number:
                self._taken_by = owner.driver or Process.this()
                return
            self._count += 1
            self._client.set_tag(self.run_id, tags.HEARTBEAT, f"{self.number}:{self._count}")
            self._renewed = time.monotonic()
        except Exception:  # MLflow is away: what this process writes does not arrive either, and the next beat tells
            return


_held: dict[str, Lease] = {}
"""The runs that this process owns and works on."""
