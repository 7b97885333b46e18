"""Where a training on a cluster says which processes its ranks are, for whoever asks from another machine.

The process that coordinates a training answers on its own machine only (:mod:`~trainlib._execution.stacks.desk`). All machines of
a cluster share the store of Ray's control service. What is noted there is enough to have each node read the stacks of its
workers from outside, also if the coordinating process hangs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

import ray

from trainlib._execution import cluster, liveness
from trainlib._execution.worker import WorkerFacts

__all__ = ["noted", "workers_of"]

_NAMESPACE = b"trainlib-ranks"
_ANSWER_S = 2.0


@contextmanager
def noted(run_id: str, workers: Sequence[WorkerFacts]) -> Iterator[None]:
    """Within the block, say which workers a training has, by rank. A Ray of one machine needs no note."""
    if cluster.is_local():
        yield
        return
    of = liveness.session()
    _write(run_id, json.dumps([asdict(each) for each in workers]))
    try:
        yield
    finally:
        if liveness.session() == of:  # otherwise it is gone, and the note with it
            _write(run_id, None)


def workers_of(run_id: str) -> list[WorkerFacts]:
    """The workers of a training that runs on the Ray that this process is connected to, by rank; none if it is not known there."""
    found = _store().internal_kv_get(run_id.encode(), _NAMESPACE, timeout=_ANSWER_S)
    return [WorkerFacts(**each) for each in json.loads(found)] if found else []


def _write(run_id: str, note: str | None) -> None:
    with suppress(ray.exceptions.RayError):  # a training does without it
        if note is None:
            _store().internal_kv_del(run_id.encode(), False, _NAMESPACE, timeout=_ANSWER_S)
        else:
            _store().internal_kv_put(run_id.encode(), note.encode(), True, _NAMESPACE, timeout=_ANSWER_S)


def _store() -> Any:
    worker: Any = ray._private.worker.global_worker
    return worker.gcs_client
