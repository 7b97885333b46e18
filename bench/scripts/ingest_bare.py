"""Rows per second from the same pipeline into 2 plain Ray actors."""

import os

import ray

from bench.scripts.rows import rows_per_s, rows_through_a_map
from bench.scripts.side import finish

ray.init(address="local", num_cpus=(os.cpu_count() or 1) + 2, include_dashboard=False, log_to_driver=False)


@ray.remote(num_cpus=1)
class Reader:
    """Reads its shard."""

    def read(self, part):
        return rows_per_s(part)


readers = [Reader.remote() for _ in range(2)]
parts = rows_through_a_map().streaming_split(2, equal=True)
finish(rows_per_s=sum(ray.get([reader.read.remote(part) for reader, part in zip(readers, parts, strict=True)])))
