"""Rounds of boosting: how many are left, and what is reported and saved after each."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib import session

if TYPE_CHECKING:
    from trainlib.checkpoint import Checkpoint

__all__ = ["Rounds", "threads"]


class Rounds:
    """Counts the rounds of a training, and reports each of them on this rank.

    Args:
        total: How many rounds the model is to have.
        done: How many the checkpoint has that the training goes on from.
    """

    def __init__(self, total: int, done: int) -> None:
        self.total = total
        self.done = done
        # A retry may find that only the end of the training function was missing.
        if done >= total and session.get_context().get_attempt() == 1:
            raise ValueError(
                f"the checkpoint to go on from has {done} rounds already, and num_boost_round is {total}. Set num_boost_round "
                "to the number of rounds that the model is to have in the end"
            )

    @property
    def left(self) -> int:
        """How many rounds are still to be trained."""
        return max(0, self.total - self.done)

    def report(self, metrics: dict[str, Any], save: Callable[[], Checkpoint], *, is_last: bool = False) -> None:
        """Report a round, and save the model if it is due. Rank 0 saves it.

        Args:
            metrics: What was measured after this round.
            save: Makes the checkpoint.
            is_last: Whether no round comes after it, although there are fewer than planned.
        """
        self.done += 1
        config = session.current("report").checkpoint_config
        is_due = config.is_due(self.done, is_last=is_last or self.done >= self.total)
        session.report(metrics, checkpoint=save() if is_due and session.get_world_rank() == 0 else None)


def threads() -> int:
    """How many threads this worker may use: one for each CPU that it was given."""
    return max(1, int(os.environ.get("OMP_NUM_THREADS", "1")))
