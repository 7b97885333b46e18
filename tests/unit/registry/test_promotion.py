"""Whether a new version takes an alias: better on the same rows, or, where that cannot be known, on what is comparable."""

from __future__ import annotations

import math

import pytest

from trainlib._registry.promotion import Basis, Candidate, Champion, Verdict, decide

NAN = math.nan


@pytest.mark.parametrize(
    ("new", "old", "mode", "verdict"),
    [
        (0.9, 0.8, "max", Verdict.BETTER),
        (0.7, 0.8, "max", Verdict.NOT_BETTER),
        (0.8, 0.8, "max", Verdict.NOT_BETTER),
        (0.7, 0.8, "min", Verdict.BETTER),
        (0.9, 0.8, "min", Verdict.NOT_BETTER),
        (math.inf, 0.8, "max", Verdict.BETTER),
        (NAN, 0.8, "max", Verdict.NO_NUMBER),
        (NAN, NAN, "max", Verdict.NO_NUMBER),
        (0.1, NAN, "max", Verdict.BETTER),
    ],
)
def test_only_a_better_score_on_the_same_rows_takes_the_alias(new, old, mode, verdict):
    # What the trainings reported says the opposite each time, and does not count.
    decision = decide(Candidate("2", reported=-1, held_out=new), Champion("1", held_out=old, recorded=1), mode)
    assert (decision.verdict, decision.basis) == (verdict, Basis.HELD_OUT)
    assert decision.is_promoted == (verdict is Verdict.BETTER)
    assert decision.champion == "1"


def test_the_first_version_takes_the_alias_unless_its_score_is_no_number():
    assert decide(Candidate("1", 0.5, 0.4), None, "max").verdict is Verdict.FIRST
    assert decide(Candidate("1", 0.5, 0.4), None, "max").new == 0.4
    assert decide(Candidate("1", 0.5), None, "max").new == 0.5
    assert decide(Candidate("1", 0.5, NAN), None, "max").verdict is Verdict.NO_NUMBER


def test_a_version_that_has_the_alias_already_keeps_it():
    """As after a retry of a run that was killed once the alias was moved."""
    decision = decide(Candidate("3", 0.5, 0.4), Champion("3", recorded_held_out=0.4, recorded=0.5), "max")
    assert decision.verdict is Verdict.HOLDS_IT
    assert decision.is_promoted


def test_like_is_compared_with_like_when_the_other_version_cannot_be_evaluated():
    earlier = Champion("1", why_not="its files are gone", recorded_held_out=0.6, recorded=0.99)
    decision = decide(Candidate("2", reported=0.9, held_out=0.7), earlier, "max")
    assert (decision.verdict, decision.basis, decision.old) == (Verdict.BETTER, Basis.EARLIER_ROWS, 0.6)
    assert decision.why_not == "its files are gone"
    reported = Champion("1", why_not="its files are gone", recorded=0.95)
    decision = decide(Candidate("2", reported=0.9, held_out=0.99), reported, "max")
    assert (decision.verdict, decision.basis, decision.new) == (Verdict.NOT_BETTER, Basis.REPORTED, 0.9)


def test_without_an_evaluation_what_trainings_reported_is_compared():
    assert decide(Candidate("2", 0.9), Champion("1", recorded_held_out=0.99, recorded=0.8), "max").is_promoted
    assert not decide(Candidate("2", 0.7), Champion("1", recorded=0.8), "max").is_promoted


def test_a_version_of_which_no_score_is_known_keeps_the_alias():
    decision = decide(Candidate("2", 0.9, 0.9), Champion("1", why_not="it was not registered by trainlib"), "max")
    assert decision.verdict is Verdict.NOTHING_TO_COMPARE
    assert not decision.is_promoted


def test_a_person_has_the_last_word():
    decision = decide(Candidate("2", 0.9, 0.9), Champion("1", held_out=0.8), "max")
    for verdict in (Verdict.DECLINED, Verdict.UNANSWERED):
        assert not decision.instead(verdict).is_promoted
        assert decision.instead(verdict).new == 0.9
