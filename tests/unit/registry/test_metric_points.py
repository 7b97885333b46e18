"""What becomes of reported metrics."""

from __future__ import annotations

import math

from trainlib._registry.metric_points import MetricPoints


def made(points: MetricPoints, iteration: int, **metrics: float) -> list[tuple[str, int, float]]:
    return [(point.key, point.step, point.value) for point in points.of(iteration, metrics, 1.5)[0]]


def test_each_metric_has_one_point_for_each_iteration():
    points = MetricPoints("run", {"loss": 3})
    assert made(points, 3, loss=1.0, accuracy=0.5) == [("accuracy", 3, 0.5)]
    assert made(points, 4, loss=1.0, accuracy=0.6) == [("loss", 4, 1.0), ("accuracy", 4, 0.6)]
    assert made(points, 4, loss=2.0) == []


def test_points_are_made_again_for_a_checkpoint_that_was_saved_later_but_only_the_same_ones():
    points = MetricPoints("run", {"loss": 3})
    (first,), _ = points.of(4, {"loss": 1.0}, 1.5)
    (again,), _ = points.of(4, {"loss": 1.0}, 1.5, again=True)
    assert dict(again) == dict(first)
    assert points.of(4, {"loss": 1.0}, 2.5, again=True) == ([], []), "another attempt has come to this iteration"
    assert MetricPoints("run", {"loss": 4}).of(4, {"loss": 1.0}, 1.5, again=True) == ([], [])


def test_a_point_has_its_time_in_milliseconds():
    ((point,), _) = MetricPoints("run", {}).of(1, {"loss": 1.0}, 1.5)
    assert (point.timestamp, point.run_id) == (1500, "run")


def test_what_is_not_finite_is_a_gap_and_is_warned_of_once():
    points = MetricPoints("run", {})
    ((point,), (warning,)) = points.of(1, {"loss": math.inf}, 0.0)
    assert math.isnan(point.value)
    assert warning == "metric 'loss' is inf at iteration 1; MLflow shows it as a gap"
    assert points.of(2, {"loss": math.nan}, 0.0)[1] == []


def test_a_name_that_mlflow_does_not_accept_is_warned_of_once():
    points = MetricPoints("run", {})
    ((point,), (warning,)) = points.of(1, {"recall@10": 0.5}, 0.0)
    assert point.key == "recall at 10"
    assert warning == "metric 'recall@10' is called 'recall at 10' in MLflow, which does not accept its name"
    assert points.of(2, {"recall@10": 0.5}, 0.0)[1] == []
