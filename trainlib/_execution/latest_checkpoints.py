"""Which checkpoint is the newest one at which point of a training. Pure: nobody waits here."""

from __future__ import annotations

from dataclasses import dataclass

from trainlib.checkpoint import Checkpoint
from trainlib.errors import OutOfStepError

__all__ = ["LatestCheckpoint", "LatestCheckpoints", "Place"]

Place = tuple[int, int]
"""How far a rank is: how often it has reported, and how often it has called ``save_checkpoint()`` since."""

# Rank 0 hears how often the others report, but not how often they save. So it keeps only the last of what is saved
# between two reports.
_MOST_SAVES = 10


@dataclass(frozen=True)
class LatestCheckpoint:
    """What rank 0 says when another rank asks for the newest checkpoint."""

    is_reached: bool
    """Whether rank 0 has come as far as the other rank. If not, that has to ask again."""
    checkpoint: Checkpoint | None
    """The one that was saved last when rank 0 was where the other rank is now. None if this attempt had saved none by then."""


class LatestCheckpoints:
    """The newest checkpoint of rank 0, and those before it that a slower rank may still ask for.

    Ranks do not run in lockstep. Each has to get what rank 0 itself got at the same point of the training function: ranks that
    start from different weights never come together again.

    Example:
        >>> latest = LatestCheckpoints(alone=False)
        >>> latest.add((1, 0), Checkpoint.from_dict({"epoch": 0}))
        >>> latest.add((2, 0), Checkpoint.from_dict({"epoch": 1}))
        >>> latest.at((1, 0)).to_dict(), latest.at((3, 0)).to_dict()
        ({'epoch': 0}, {'epoch': 1})
    """

    def __init__(self, *, alone: bool) -> None:
        """
        Args:
            alone: Whether there is no other rank.
        """
        self._alone = alone
        self._known: list[tuple[Place, Checkpoint | None]] = [((0, 0), None)]
        """Oldest first, each with the place where it became the newest one."""

    @property
    def newest(self) -> Checkpoint | None:
        """The one that was saved last. None if none was."""
        return self._known[-1][1]

    def add(self, place: Place, checkpoint: Checkpoint) -> None:
        """Another one is saved, by the call that brings rank 0 to this place."""
        self._known.append((place, checkpoint))
        reports, saves = place
        if self._alone:
            self._forget_before(place)
        elif saves > _MOST_SAVES:
            self._forget_before((reports, saves - _MOST_SAVES))

    def slowest_is_at(self, reports: int) -> None:
        """No rank has reported less often: what was replaced by then is asked for no more."""
        self._forget_before((reports, 0))

    def clear(self) -> None:
        """Nobody asks for any of them any more."""
        self._known = [((0, 0), None)]

    def at(self, place: Place) -> Checkpoint | None:
        """The one that was the newest at a place. None if none was saved by then.

        Raises:
            OutOfStepError: it is kept no more.
        """
        for since, checkpoint in reversed(self._known):
            if since <= place:
                return checkpoint
        raise OutOfStepError(
            f"a rank asks for the checkpoint that was the newest after {place[0]} report(s) and {place[1]} call(s) of "
            f"save_checkpoint(), but rank 0 has saved more than {_MOST_SAVES} since. Every rank must call save_checkpoint() "
            "equally often."
        )

    def _forget_before(self, place: Place) -> None:
        while len(self._known) > 1 and self._known[1][0] <= place:
            del self._known[0]
