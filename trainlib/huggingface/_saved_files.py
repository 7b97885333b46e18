"""The files of a Transformers checkpoint, which every rank writes a part of, brought together on rank 0."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

__all__ = ["collect"]


def collect(folder: Path) -> None:
    """Bring what other ranks have saved in their folders to that of rank 0. All ranks must call it, after they have saved.

    Each rank saves the state of its random numbers, and its part of a model that is sharded. Ranks have working directories of
    their own, and may be on other machines, so that a relative ``output_dir`` is another one on each.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    listed: list[object] = [_names_in(folder)]
    dist.broadcast_object_list(listed, src=0)
    known: set[str] = set(listed[0])  # type: ignore[call-overload]
    missing = {name: (folder / name).read_bytes() for name in _names_in(folder) if name not in known}
    received: list[dict[str, bytes]] | None = [{}] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(missing, received, dst=0)
    for files in received or []:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def _names_in(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
