"""Who decides whether a training goes on, and in which order."""

from __future__ import annotations

from trainlib._registry.attempts import Outcome
from trainlib._training.judges import Judge, Verdict, rule, stop_judges
from trainlib.tune import TimeoutStopper


def says(verdict: Verdict, **settings) -> Judge:
    return Judge(lambda result: verdict, **settings)


def test_without_judges_a_training_goes_on():
    assert rule([], {}).verdict is Verdict.CONTINUE


def test_the_first_that_does_not_say_continue_wins_and_the_others_are_not_asked():
    asked = []

    def remember(result):
        asked.append(result)
        return Verdict.STOP

    judges = [says(Verdict.CONTINUE), says(Verdict.PAUSE), Judge(remember)]
    ruling = rule(judges, {})
    assert (ruling.verdict, ruling.outcome) == (Verdict.PAUSE, Outcome.PAUSED)
    assert asked == []


def test_the_judge_that_stops_a_training_says_how_that_is_recorded():
    assert rule([says(Verdict.STOP)], {}).outcome is Outcome.FINISHED
    assert rule([says(Verdict.STOP, stopped_as=Outcome.STOPPED)], {}).outcome is Outcome.STOPPED


def test_no_stop_is_no_judge_so_that_reports_need_not_wait():
    assert stop_judges(None, "t") == []


def test_bounds_and_functions_are_judges_that_reports_wait_for():
    for stop in ({"loss": 1}, lambda trial_id, result: result["loss"] >= 1):
        (judge,) = stop_judges(stop, "t")
        assert judge.in_step
        assert not judge.between_reports
        assert judge({"loss": 2}) is Verdict.STOP
        assert judge({"loss": 0}) is Verdict.CONTINUE


def test_a_stopper_that_can_end_everything_is_also_asked_when_nothing_is_reported():
    silent = [judge for judge in stop_judges(TimeoutStopper(1e-9), "t") if judge.between_reports]
    assert rule(silent, {}).verdict is Verdict.STOP
