"""The rows of a trial that an earlier process left."""

from __future__ import annotations

from pathlib import Path

from mlflow.entities import Metric

from trainlib._registry.logged_models import FoundCheckpoints
from trainlib._registry.metric_history import Curve, MetricHistory
from trainlib._registry.recorded_run import Place, RecordedRun
from trainlib._registry.recorded_sweep import RecordedRows, seconds_trained
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import TrackingStore

PLACE = Place(TrackingStore("http://mlflow:5000"), "7", "digits", "s3://bucket/artifacts", Path("/runs"))


def recorded(**facts) -> RecordedRun:
    return RecordedRun(PLACE, "run", "trial", "s3://bucket/artifacts/run", 100.0, **facts)


def history(name: str, *points: tuple[int, float, float]) -> MetricHistory:
    """Of one metric; each point has an iteration, a value, and when it was reported."""
    return MetricHistory({name: Curve.of(Metric(name, value, int(time * 1000), step) for step, value, time in points)})


def test_rows_have_the_name_that_the_metric_was_reported_with():
    run = recorded(history=history("recall at 10", (2, 0.5, 120.0), (1, 0.25, 110.0)))
    assert list(RecordedRows(run, "recall@10")) == [
        {"training_iteration": 1, "recall@10": 0.25, "time_total_s": 10.0},
        {"training_iteration": 2, "recall@10": 0.5, "time_total_s": 20.0},
    ]
    assert RecordedRows(run, None)[0]["recall at 10"] == 0.25


def test_the_time_in_which_nobody_worked_on_it_does_not_count():
    checkpoints = FoundCheckpoints(saved=(SavedCheckpoint(0, 2, "m-0", "/c/0", seconds=15.0),))
    run = recorded(history=history("a", (1, 1.0, 110.0), (2, 2.0, 5000.0)), checkpoints=checkpoints)
    rows = RecordedRows(run, None)
    assert [row["time_total_s"] for row in rows] == [10.0, 15.0]


def test_time_never_goes_backwards():
    trained = seconds_trained({1: 100.0, 2: 900.0, 3: 901.0}, started=0.0, saved={3: 50.0})
    assert trained == {1: 50.0, 2: 50.0, 3: 50.0}
