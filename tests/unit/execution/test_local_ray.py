"""What Ray reads from the environment of whoever uses a Ray of this machine alone."""

from __future__ import annotations

import pytest
from ray.data._internal.usage.collector import usage_collection_disabled

from trainlib._execution.local_ray import expect_one_machine


@pytest.mark.parametrize(("chosen", "is_off"), [(None, True), ("1", False)], ids=["by default", "if somebody wants it"])
def test_usage_is_collected_only_if_somebody_wants_it(monkeypatch, chosen, is_off):
    monkeypatch.setenv("RAY_DATA_PARQUET_FOOTER_NUM_ACTORS", "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", chosen or "")
    if chosen is None:
        monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    expect_one_machine()
    assert usage_collection_disabled() is is_off
