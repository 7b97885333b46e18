"""Folders on the disks of other nodes of the Ray cluster."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from trainlib import _packing as packing

__all__ = ["FetchedFolder", "fetch_folder", "this_node"]


@dataclass(frozen=True)
class FetchedFolder:
    """A folder that was on another node."""

    packed: bytes
    is_own: bool
    """Whether it belonged to the user whom Ray runs as there."""


def this_node() -> str | None:
    """The id of the Ray node that this process is on. None outside of Ray."""
    if "ray" not in sys.modules:
        return None
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else None


def fetch_folder(node: str, path: str) -> FetchedFolder | None:
    """Bring a folder from another node. None if it is not there either, or the node is gone."""
    own = this_node()
    if own is None or own == node:
        return None
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node, soft=False)
    read = ray.remote(_read_folder).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
    try:
        fetched: FetchedFolder | None = ray.get(read.remote(path))
    except ray.exceptions.RayError:
        return None
    return fetched


def _read_folder(path: str) -> FetchedFolder | None:
    folder = Path(path)
    if not folder.is_dir():
        return None
    return FetchedFolder(packing.pack(folder), is_own=folder.stat().st_uid == os.getuid())
