"""The metrics that trainlib records by itself."""

from __future__ import annotations

from trainlib._registry.metrics import is_about_data, rows_read


def test_rows_that_were_read_are_metrics_about_data():
    few = rows_read("train", [5, 4], is_split=True)
    assert few == {"system/data/train/rows": 9, "system/data/train/rows_rank_0": 5, "system/data/train/rows_rank_1": 4}
    many = rows_read("train", [5] * 8 + [2], is_split=True)
    assert many == {"system/data/train/rows": 42, "system/data/train/rows_least": 2, "system/data/train/rows_most": 5}
    assert all(is_about_data(name) for name in (*few, *many))
    assert is_about_data("data/train/rows_rank_1"), "as runs of earlier versions have it"
    assert not any(is_about_data(name) for name in ("database_loss", "data/loss", "system/cpu_utilization_percentage"))
