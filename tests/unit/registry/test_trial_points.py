"""A trial's point of the search space, kept in tags."""

from __future__ import annotations

from trainlib._registry.trial_points import point_from, point_tags


def test_a_point_can_be_read_back():
    assert point_from({**point_tags('{"lr": 0.1}'), "mlflow.user": "somebody"}) == '{"lr": 0.1}'


def test_a_point_that_is_too_long_for_one_tag_has_several():
    point = "".join(map(str, range(10_000)))
    stored = point_tags(point)
    assert max(len(value) for value in stored.values()) <= 8000
    assert int(stored["trainlib.trial.points"]) == len(stored) - 1 > 1
    assert point_from(stored) == point


def test_what_is_left_of_a_longer_point_does_not_matter():
    """A trial that takes over another's params writes its new point over the old one."""
    longer = point_tags("x" * 20_000)
    assert point_from({**longer, **point_tags("short")}) == "short"
