"""What an attempt is to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib._execution.backend import BackendConfig
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
    """Whether to start workers for a retry in the background."""
    ingest: Ingest | None = None
    """The data, if the trainer was given any."""
