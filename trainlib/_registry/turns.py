"""Params that are written once, and turns: what one process at a time may do, among all that use a store.

MLflow has no compare-and-set, but it lets nobody change a param: of two processes that write it, the first one wins.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainlib._process import Process
from trainlib._registry import tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["take_turn", "write_once"]

HOLD_S = 10.0
"""How long a turn lasts at most. A process that has not ended its turn by then has died."""
_POLL_S = 0.1


def write_once(client: MlflowClient, run_id: str, param: str) -> bool:
    """Write who this is into a param of a run. Gives False if another process has, or if the run was deleted."""
    from mlflow.exceptions import MlflowException

    token = f"{Process.this()} {uuid.uuid4().hex[:8]}"
    try:
        client.log_param(run_id, param, token, synchronous=True)
    except MlflowException:
        run = client.get_run(run_id)
        holder = run.data.params.get(param)
        if holder is None and run.info.lifecycle_stage == "active":
            raise  # it was not refused: MLflow failed
        return holder == token  # a request that was sent twice may be refused the second time
    return True


@contextmanager
def take_turn(client: MlflowClient, run_id: str, subject: str) -> Iterator[float]:
    """Wait until no other process has its turn, and have one. Gives the time by which it has to be over.

    Args:
        client: A client of the store.
        run_id: A run that all these processes know. Its params count the turns.
        subject: What the turns are about.
    """
    waits_for, since = 0, time.monotonic()
    while True:
        run = client.get_run(run_id)
        taken = max((tags.turn_number(subject, param) or 0 for param in run.data.params), default=0)
        ended = int(run.data.tags.get(tags.turns_ended(subject), "0"))
        if taken != waits_for:
            waits_for, since = taken, time.monotonic()
        if taken <= ended or time.monotonic() - since > HOLD_S:
            began = time.monotonic()
            if write_once(client, run_id, tags.turn(subject, taken + 1)):
                break
            continue
        time.sleep(_POLL_S)
    try:
        yield began + HOLD_S / 2
    finally:
        client.set_tag(run_id, tags.turns_ended(subject), str(taken + 1))
