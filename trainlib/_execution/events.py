"""What happens in an attempt, in the order in which it happens.

The first group comes from the attempt itself, the second from its workers. Whoever makes an attempt reads all but
:class:`Finished` and :class:`Failed`, which end it.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._execution.carried_errors import portable
from trainlib._execution.origin import Origin, origin_of
from trainlib._execution.stacks.frames import Frame, frames_of

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib._execution.worker import WorkerFacts

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Note:
    """Something a person may want to know, such as what is being waited for."""

    text: str


@dataclass(frozen=True)
class DataOpened:
    """The datasets can be read, and the preprocessor is fitted."""

    ingest: Ingest


@dataclass(frozen=True)
class Started:
    """The workers are up. The training function starts now."""

    workers: list[WorkerFacts]
    """By rank."""


@dataclass(frozen=True)
class Tick:
    """Some time has passed. Lets the reader end an attempt whose ranks report nothing."""


@dataclass(frozen=True)
class StagedCheckpoint:
    """A checkpoint whose files are complete, but not yet where checkpoints are kept."""

    index: int
    path: str
    score: float | None
    kind: str = ""
    """The framework whose class it was reported as."""
    packed: bytes | None = None
    """Its files, if checkpoints are kept in memory alone. It has no path then."""
    reported: dict[str, float] | None = None
    """The metrics of its iteration, if they were reported before it: it was saved when the function was told to stop."""


@dataclass(frozen=True)
class Report:
    """One call of ``report()``, or of ``save_checkpoint()``, which does not advance the iteration."""

    iteration: int
    metrics: dict[str, Any] | None
    """As it was reported. None from ranks other than 0, unless the plan asks for those of all ranks: only rank 0's are recorded."""
    checkpoint: StagedCheckpoint | None
    timestamp: float
    seconds: float
    """Since the report before, or since the training function started."""
    saves_when_stopped: bool = False
    """Whether the function saves its state when it is told to stop. It is given time for it, and all that it reports counts."""


@dataclass(frozen=True)
class RankReports:
    """What all ranks have reported in an iteration. Only if the plan asks for it."""

    iteration: int
    reports: tuple[Report, ...]
    """By rank."""


@dataclass(frozen=True)
class EpochRead:
    """A rank has read its share of a dataset from start to end."""

    dataset: str
    rows: int
    iteration: int
    """The one under way."""
    rank: int = 0
    """Filled in by the process that coordinates the ranks."""


@dataclass(frozen=True)
class Seeded:
    """A rank has set the seeds of its random numbers, with ``enable_reproducibility()``."""

    seed: int
    rank: int = 0
    """Filled in by the process that coordinates the ranks."""


@dataclass(frozen=True)
class Output:
    """A line that the training function printed or logged."""

    text: str
    is_error: bool
    rank: int = 0
    """Filled in by the process that coordinates the ranks."""


@dataclass(frozen=True)
class FileSent:
    """A rank has sent a file for the training's folder, such as the trace of a profiler."""

    name: str
    """Its path in that folder."""
    content: bytes
    """Compressed."""
    rank: int = 0
    """Filled in by the process that coordinates the ranks."""


@dataclass(frozen=True)
class Finished:
    """The training function returned, or was stopped."""

    value: bytes
    """Pickled: what it is may not be known to the receiver."""
    reports: int
    at: float
    """When it returned, or began to be stopped, by the clock of :attr:`Failed.at`."""


@dataclass(frozen=True)
class Failed:
    """The training function raised."""

    error: bytes
    """Pickled: what it is may not be known to the receiver."""
    summary: str
    traceback: str
    frames: tuple[Frame, ...]
    """The calls that led to it. None, if it was found from outside that the function cannot go on."""
    at: float
    """When, on a clock that only goes forward and that the processes of a host have in common."""
    origin: Origin | None = None
    """Where it was raised, if that is known."""

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Describe what it raised. The traceback starts in the user's own code."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
        frames = frames_of(trace)
        return cls(
            portable(error.with_traceback(None)),
            f"{type(error).__name__}: {error}",
            text,
            frames,
            time.monotonic(),
            origin_of(error, frames),
        )


WorkerEvent = Note | Report | EpochRead | Seeded | FileSent | Output | Finished | Failed
AttemptEvent = Note | DataOpened | Started | Tick | Report | RankReports | EpochRead | Seeded | FileSent | Output
