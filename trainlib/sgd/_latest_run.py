"""What a trainer knows of its latest run while it goes on."""

from __future__ import annotations

from typing import Any

from trainlib.callbacks import Callback, Trial
from trainlib.checkpoint import Checkpoint

__all__ = ["LatestRun"]


class LatestRun(Callback):
    """Hears of each checkpoint as soon as it is saved, so that nobody has to wait for the run's Result."""

    def __init__(self) -> None:
        self.was_opened = False
        """Whether there is a run. One that makes no sense is refused before."""
        self.saved: Checkpoint | None = None
        """The newest checkpoint that can be read."""

    def setup(
        self, stop: Any = None, num_samples: int | None = None, total_num_samples: int | None = None, **info: Any
    ) -> None:
        self.was_opened = True

    def on_checkpoint(self, iteration: int, trials: list[Trial], trial: Trial, checkpoint: Any, **info: Any) -> None:
        self.saved = checkpoint
