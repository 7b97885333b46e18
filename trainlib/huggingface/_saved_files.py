"""The files of a Transformers checkpoint, which every rank writes a part of, brought together on rank 0."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch.distributed as dist

from trainlib._execution.working_directory import ORIGINAL

__all__ = ["collect", "is_of_one_rank"]

# How many bytes of a file are sent at a time. More than this, and a few copies of it, is never held in memory.
_AT_ONCE = 4 << 20


def collect(folder: Path) -> None:
    """Bring what other ranks have saved in their folders to that of rank 0. All ranks must call it, after they have saved.

    Each rank saves the state of its random numbers, and its part of a model that is sharded. Ranks have working directories of
    their own, and may be on other machines, so that a relative ``output_dir`` is another one on each. Files that rank 0 has, or
    sees on a shared disk, are left as they are.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    saved: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(saved, _files_in(folder))
    # Rank 0 looks only now, when all have saved: on a shared disk, it sees what the others have.
    wanted: list[Any] = [_wanted(saved, set(_files_in(folder))) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(wanted, src=0)
    for name, (rank, size) in wanted[0].items():
        if dist.get_rank() == 0:
            _receive(folder / name, rank, size)
        elif dist.get_rank() == rank:
            _send(folder / name, size)


def is_of_one_rank(folder: str) -> bool:
    """Whether a folder lies in the working directory of this rank, where no other rank sees it."""
    here, script = Path.cwd().resolve(), os.environ.get(ORIGINAL)
    is_shared = script is not None and Path(script).resolve() == here
    return not is_shared and Path(folder).resolve().is_relative_to(here)


def _wanted(saved: list[dict[str, int]], present: set[str]) -> dict[str, tuple[int, int]]:
    """The files that are not present, with the first rank that has them and their size."""
    found: dict[str, tuple[int, int]] = {}
    for rank, files in enumerate(saved):
        for name, size in files.items():
            if name not in present:
                found.setdefault(name, (rank, size))
    return found


def _send(file: Path, size: int) -> None:
    with file.open("rb") as opened:
        for at in range(0, size, _AT_ONCE):
            dist.send_object_list([opened.read(min(_AT_ONCE, size - at))], dst=0)


def _receive(file: Path, rank: int, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        for _ in range(0, size, _AT_ONCE):
            received: list[Any] = [None]
            dist.recv_object_list(received, src=rank)
            opened.write(received[0])


def _files_in(folder: Path) -> dict[str, int]:
    """The names of the files in a folder and its folders, and their sizes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
