"""Which checkpoint beats another."""

from __future__ import annotations

import pytest

from trainlib._registry.models import Selection, select


def chosen(mode, score: float) -> Selection:
    return Selection("run", "m-1", "/c", 1, "accuracy", mode, score)


def test_only_a_better_score_beats_another():
    assert chosen("max", 0.9).beats(0.8)
    assert not chosen("max", 0.9).beats(0.9), "an equal one does not move the alias"
    assert chosen("min", 0.1).beats(0.2)
    assert not chosen("min", 0.1).beats(0.1)


def test_a_mode_that_makes_no_sense_is_refused_before_anything_is_read():
    with pytest.raises(ValueError, match="mode is 'best': use 'max' or 'min'"):
        select(["run"], "accuracy", "best")
