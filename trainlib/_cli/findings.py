"""What a check of ``trainlib doctor`` says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Health"]


class Health(StrEnum):
    """How something is."""

    OK = "ok"
    """It works."""
    NOTE = "note"
    """It works, but somebody may want to know, or it is missing and need not be there."""
    PROBLEM = "problem"
    """It does not work."""


@dataclass(frozen=True)
class Finding:
    """What a check has found."""

    name: str
    health: Health
    detail: str
    advice: str = ""
    """What to do about it."""
