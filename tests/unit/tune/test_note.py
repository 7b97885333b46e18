"""The description of a sweep in MLflow."""

from __future__ import annotations

from trainlib import DataParallelTrainer, Result
from trainlib._registry.notes import with_section
from trainlib._training.training import Progress
from trainlib.tune._life import TrialState
from trainlib.tune._note import ranked, trials_section
from trainlib.tune._point import Point
from trainlib.tune._trial import SweepTrial, default_name


def train_func(config):
    pass


def trial(number, score, state=TrialState.TERMINATED, **shown):
    made = SweepTrial(Point(number, {}), shown, shown, DataParallelTrainer(train_func), metric="loss")
    made.state = state
    made._progress = Progress(3, {}, {"loss": score})
    made.result = Result(run_id=f"run-{number}")
    made.error = RuntimeError() if state is TrialState.ERROR else None
    return made


TRIALS = [
    trial(0, 0.5, lr=0.1, api_key="********"),
    trial(1, 0.2, lr=0.01, api_key="********"),
    trial(2, None, lr=0.2, api_key="********"),
    trial(3, 0.1, TrialState.ERROR, lr=0.3, api_key="********"),
    trial(4, float("nan"), lr=0.4, api_key="********"),
]


def section(trials=TRIALS, **changed):
    return trials_section(
        trials, **{"experiment_id": "7", "run_id": "sweep", "metric": "loss", "mode": "min", **changed}
    )


def test_the_best_trial_comes_first_and_those_without_a_score_last():
    assert [each.number for each in ranked(TRIALS, "min")] == [1, 0, 2, 3, 4]
    assert [each.number for each in ranked(TRIALS, "max")] == [0, 1, 2, 3, 4]


def test_each_trial_has_a_link_its_score_and_its_settings():
    found = section(plots=["plots/history.png"])
    assert found.columns == ["trial", "state", "iterations", "loss", "lr", "api\\_key"]
    link = "[1](#/experiments/7/runs/run-1?workflowType=machine_learning)"
    assert found.rows[0] == [link, "terminated", "3", "0.2", "0.01", "\\*" * 8]
    (intro,) = found.intro
    assert "[Table of all trials](#/experiments/7/runs?workflowType=machine_learning&viewStateShareKey=sweep)" in intro
    assert "[Compare the first 5](#/compare-runs?runs=%5B%22run-1%22%2C" in intro
    assert intro.endswith("4 terminated, 1 error")
    assert found.outro == ["![plots/history.png](get-artifact?path=plots%2Fhistory.png&run_uuid=sweep)"]


def test_of_a_long_sweep_the_best_are_in_the_note():
    many = [trial(number, float(1000 - number), lr=0.1) for number in range(1000)]
    note = with_section("", section(many))
    assert len(note) < 8000
    assert "| [999](" in note
    assert "| [0](" not in note


def test_a_sweep_that_began_no_trial_or_has_no_metric_can_be_described():
    assert "Compare" not in with_section("", section([]))
    assert section(metric=None).columns == ["trial", "state", "iterations", "lr", "api\\_key"]


def test_the_name_of_a_trial_says_what_differs_without_secrets():
    assert default_name(7, {"model.lr": 0.01, "api_key": "********", "act": "a b/c"}) == "trial 7 · lr=0.01 act=a_b_c"
    assert default_name(7, {}) == "trial 7"
    assert len(default_name(7, {f"param_{number}": number for number in range(100)})) <= 80
