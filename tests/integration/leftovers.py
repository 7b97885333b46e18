"""Looks for what a training may have left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import ray
from ray.util import placement_group_table

from trainlib._execution.pool.own_pool import pool


def assert_nothing_left_behind() -> None:
    """No placement group, no worker but the idle ones that stand by, no half-written checkpoint."""
    groups = [group for group in placement_group_table().values() if group["state"] != "REMOVED"]
    assert groups == []
    deadline = time.monotonic() + 10
    while alive := [actor for actor in ray._private.state.actors().values() if _is_left(actor)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.1)
    home = Path(os.environ["TRAINLIB_HOME"])
    assert list(home.rglob(".staging")) == []


def _is_left(actor: dict) -> bool:
    """Whether it is one that a training should have ended. Ray Data has one or two of its own for the whole cluster."""
    idle = {actor._actor_id.hex() for actor in pool.idle_actors}
    return actor["State"] == "ALIVE" and not actor["IsDetached"] and actor["ActorID"] not in idle
