"""The version of what trainlib writes: runs, their settings, checkpoints, and its home folder."""

from __future__ import annotations

__all__ = ["FORMAT"]

FORMAT = 2
"""Raised when something is written in a way that an older trainlib would read wrongly.

1: everything before versions were written down. 2: runs have owners, whose counters move while they live.
"""
