"""The metrics that trainlib records by itself."""

from __future__ import annotations

from trainlib._registry.metrics import is_about_data, rows_read


def test_rows_that_were_read_are_metrics_about_data():
    few = rows_read("train", [5, 4], is_split=True)
    assert few == {"data/train/rows": 9, "data/train/rows_rank_0": 5, "data/train/rows_rank_1": 4}
    many = rows_read("train", [5] * 8 + [2], is_split=True)
    assert many == {"data/train/rows": 42, "data/train/rows_least": 2, "data/train/rows_most": 5}
    assert all(is_about_data(name) for name in (*few, *many))
    assert not is_about_data("database_loss")
