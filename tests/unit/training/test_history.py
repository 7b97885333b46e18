"""What a result holds besides what was reported."""

from __future__ import annotations

from trainlib._execution.events import Report
from trainlib._execution.worker import WorkerFacts
from trainlib._training.history import FILLED_IN, History


def test_what_is_filled_in_is_told_apart_from_what_was_reported():
    history = History(trial_id="a", experiment_id="1", config={}, newest_iteration=0)
    history.attempt_starts(0)
    history.workers_started(WorkerFacts("n", "127.0.0.1", "h", 1))
    result = history.add(Report(1, {"loss": 1.0}, None, 0.0, 0.1))
    assert result.keys() - FILLED_IN == {"loss"}
    assert result.keys() >= FILLED_IN


def test_a_training_that_another_process_began_has_trained_as_long_as_that():
    history = History(trial_id="a", experiment_id="1", config={}, newest_iteration=3, seconds=600.0)
    history.attempt_starts(3)
    assert 600.0 <= history.add(Report(4, {"loss": 1.0}, None, 0.0, 0.1))["time_total_s"] < 660.0
