"""What a worker tells the process that coordinates it, in the order in which it happened."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class StagedCheckpoint:
    """A checkpoint whose files are complete, but not yet where checkpoints are kept."""

    index: int
    path: str
    score: float | None


@dataclass(frozen=True)
class Report:
    """One call of ``report()``, or of ``save_checkpoint()``, which does not advance the iteration."""

    iteration: int
    metrics: dict[str, Any] | None
    """None from ranks other than 0: only rank 0's count."""
    checkpoint: StagedCheckpoint | None
    timestamp: float
    seconds: float
    """Since the report before, or since the training function started."""


@dataclass(frozen=True)
class EpochRead:
    """A rank has read its share of a dataset from start to end."""

    dataset: str
    rows: int
    iteration: int
    """The one under way."""


@dataclass(frozen=True)
class Output:
    """A line that the training function printed or logged."""

    text: str
    is_error: bool


@dataclass(frozen=True)
class Finished:
    """The training function returned."""

    value: bytes
    """Pickled: what it is may not be known to the receiver."""
    reports: int


@dataclass(frozen=True)
class Failed:
    """The training function raised."""

    error: bytes
    """Pickled: what it is may not be known to the receiver."""
    summary: str
    traceback: str
    timestamp: float

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Of what it raised. The frames that lead to the user's own code are left out of the traceback."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
        try:
            pickled = cloudpickle.dumps(error.with_traceback(None))
        except Exception:
            pickled = b""
        return cls(pickled, f"{type(error).__name__}: {error}", text, time.time())


Event = Report | EpochRead | Output | Finished | Failed
