"""Whether a new version of a model takes an alias from the version that holds it. Pure: nothing is read or moved here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

__all__ = ["Basis", "Candidate", "Champion", "Decision", "Verdict", "decide", "is_better"]


class Basis(Enum):
    """What two scores that are compared were measured on."""

    HELD_OUT = "the same held-out rows"
    """Both versions were evaluated on the same rows, which neither training nor selection has seen."""
    EARLIER_ROWS = "the rows held out for each"
    """The version that holds the alias could not be evaluated again: what it scored when it was registered counts."""
    REPORTED = "the validation rows of each"
    """What each training has reported with its checkpoint: there is no evaluation, or none of the other version."""


class Verdict(Enum):
    """What becomes of the alias, and why."""

    FIRST = "no version has the alias yet"
    BETTER = "it is better than the version that has the alias"
    HOLDS_IT = "it has the alias already"
    NOT_BETTER = "it is not better than the version that has the alias"
    NO_NUMBER = "its score is not a number"
    NOTHING_TO_COMPARE = "no score of the version that has the alias is known"
    DECLINED = "it was declined"
    UNANSWERED = "nobody has answered in time"

    @property
    def is_promoted(self) -> bool:
        """Whether the alias is the new version's."""
        return self in (Verdict.FIRST, Verdict.BETTER, Verdict.HOLDS_IT)


@dataclass(frozen=True)
class Candidate:
    """A new version, and its scores by one metric."""

    version: str
    reported: float
    """What its training has reported with the checkpoint."""
    held_out: float | None = None
    """What it scores on the held-out rows. None if there is no evaluation."""


@dataclass(frozen=True)
class Champion:
    """The version that holds the alias, and its scores by the same metric."""

    version: str
    held_out: float | None = None
    """What it scores on the candidate's held-out rows. None if it was not evaluated on them."""
    why_not: str | None = None
    """Why it was not."""
    recorded_held_out: float | None = None
    """What it scored on the rows that were held out when it was registered."""
    recorded: float | None = None
    """What its training had reported."""


@dataclass(frozen=True)
class Decision:
    """What becomes of an alias, and the scores that it was decided by."""

    verdict: Verdict
    basis: Basis
    new: float
    old: float | None = None
    champion: str | None = None
    """The version that held the alias. None if none did."""
    why_not: str | None = None
    """Why that version was not evaluated on the same rows, if it was not."""

    @property
    def is_promoted(self) -> bool:
        """Whether the alias is the new version's."""
        return self.verdict.is_promoted

    def instead(self, verdict: Verdict) -> Decision:
        """The same scores with another outcome: a person has had a say."""
        return replace(self, verdict=verdict)


def decide(candidate: Candidate, champion: Champion | None, mode: Literal["max", "min"]) -> Decision:
    """Decide whether a new version takes the alias. Like is compared with like, and an equal score is not better.

    Args:
        candidate: The new version.
        champion: The version that holds the alias, if one does.
        mode: Whether a high or a low score is better.

    Example:
        >>> decide(Candidate("2", 0.9, 0.8), Champion("1", held_out=0.7), "max").verdict
        <Verdict.BETTER: 'it is better than the version that has the alias'>
    """
    basis, new, old = _comparable(candidate, champion)
    holder = champion.version if champion is not None else None
    decision = Decision(Verdict.FIRST, basis, new, old, holder, champion.why_not if champion is not None else None)
    if holder == candidate.version:
        return decision.instead(Verdict.HOLDS_IT)
    if math.isnan(new):
        return decision.instead(Verdict.NO_NUMBER)
    if champion is None:
        return decision
    if old is None:
        return decision.instead(Verdict.NOTHING_TO_COMPARE)
    return decision.instead(Verdict.BETTER if is_better(new, old, mode) else Verdict.NOT_BETTER)


def is_better(new: float, old: float, mode: Literal["max", "min"]) -> bool:
    """Whether one score is better than another. Any number is better than none.

    Example:
        >>> is_better(0.9, 0.8, "max"), is_better(0.8, 0.8, "max"), is_better(0.1, float("nan"), "min")
        (True, False, True)
    """
    if math.isnan(old):
        return not math.isnan(new)
    return new > old if mode == "max" else new < old


def _comparable(candidate: Candidate, champion: Champion | None) -> tuple[Basis, float, float | None]:
    """The scores of both that can be compared best, the candidate's first."""
    if candidate.held_out is not None and (champion is None or champion.version == candidate.version):
        return Basis.HELD_OUT, candidate.held_out, None
    if champion is None or champion.version == candidate.version:
        return Basis.REPORTED, candidate.reported, None
    ways: Sequence[tuple[Basis, float | None, float | None]] = (
        (Basis.HELD_OUT, candidate.held_out, champion.held_out),
        (Basis.EARLIER_ROWS, candidate.held_out, champion.recorded_held_out),
        (Basis.REPORTED, candidate.reported, champion.recorded),
    )
    for basis, new, old in ways:
        if new is not None and old is not None:
            return basis, new, old
    return (
        (Basis.HELD_OUT, candidate.held_out, None)
        if candidate.held_out is not None
        else (Basis.REPORTED, candidate.reported, None)
    )
