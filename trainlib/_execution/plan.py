"""What an attempt is to do, and who is told how it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trainlib._execution.backend import BackendConfig
from trainlib._execution.events import EpochRead, Report
from trainlib._execution.group import Member
from trainlib._execution.worker_session import Assignment
from trainlib.config import ScalingConfig

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest


@dataclass(frozen=True)
class AttemptPlan:
    """What an attempt is to do. The same for every rank, except for the places in ``assignment.context``."""

    number: int
    scaling: ScalingConfig
    backend: BackendConfig
    function: Callable[[], Any]
    assignment: Assignment
    spares: bool
    """Whether to have workers ready for a retry, made behind the training."""
    ingest: Ingest | None = None
    """The data, if the trainer was given any."""


class Observer(Protocol):
    """Is told what happens in an attempt, in the thread that runs it."""

    def say(self, text: str) -> None:
        """Something a person may want to know."""

    def started(self, members: list[Member]) -> None:
        """The workers are up; the training function starts now."""

    def output(self, rank: int, text: str, is_error: bool) -> None:
        """A rank printed a line."""

    def report(self, report: Report) -> bool:
        """Rank 0 reported. True ends the training."""

    def ends_now(self) -> bool:
        """Whether the training is to end although it has not reported anything that ends it."""

    def data_opened(self, ingest: Ingest) -> None:
        """The datasets have been made, and the preprocessor is fitted."""

    def epoch_read(self, rank: int, read: EpochRead) -> None:
        """A rank has read its share of a dataset."""

    def settle(self) -> None:
        """The training function has ended: wait for what needs the workers alive."""
