"""Looks for what a training may have left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import ray
from ray.util import placement_group_table

from trainlib.execution.pool import pool


def assert_nothing_left_behind() -> None:
    """No placement group, no worker, no half-written checkpoint."""
    pool.clear()
    groups = [group for group in placement_group_table().values() if group["state"] != "REMOVED"]
    assert groups == []
    deadline = time.monotonic() + 10
    while alive := [a for a in ray._private.state.actors().values() if a["State"] == "ALIVE"]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.1)
    home = Path(os.environ["TRAINLIB_HOME"])
    assert list(home.rglob(".staging")) == []
