"""The pipelines that the data measurements read, and how they are read: the same on both sides."""

from __future__ import annotations

import time
from typing import Any

ROWS = 4_000_000
EPOCHS = 3
BATCH = 8192
# The shape of one row of the large dataset: 2 MiB.
SHAPE = (256, 1024)
LARGE_ROWS = 2048
LARGE_BYTES = LARGE_ROWS * SHAPE[0] * SHAPE[1] * 8


def rows_through_a_map() -> Any:
    """Numbers through a map step."""
    import ray.data

    return ray.data.range(ROWS).map_batches(lambda batch: {"id": batch["id"], "half": batch["id"] / 2})


def large() -> Any:
    """4 GiB that are generated while being read."""
    import ray.data

    return ray.data.range_tensor(LARGE_ROWS, shape=SHAPE)


def rows_per_s(shard: Any) -> float:
    """Rows per second of one worker, without the first epoch, in which processes still start."""
    rows, started = 0, 0.0
    for epoch in range(EPOCHS):
        if epoch == 1:
            started = time.perf_counter()
        for batch in shard.iter_batches(batch_size=BATCH):
            rows += len(batch["id"]) if epoch else 0
    return rows / (time.perf_counter() - started)
