"""What is taken of a checkpoint while report() waits: the caller may change or delete what it is made of right afterwards."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

from trainlib import _packing as packing
from trainlib import _storage as storage
from trainlib._pickling import dump, dumps
from trainlib._serving.preprocessing import DICT_FILE, PREPROCESSOR_FILE, PREPROCESSOR_KEY
from trainlib.checkpoint import Checkpoint

__all__ = ["linked_copy", "pack_snapshot", "write_snapshot"]


def write_snapshot(checkpoint: Checkpoint, folder: Path, index: int, preprocessor: Any) -> None:
    """Write a checkpoint into a new folder.

    Args:
        checkpoint: What was reported.
        folder: Where to.
        index: The number that it gets.
        preprocessor: The trainer's, fitted. Without one, the checkpoint keeps its own.
    """
    kind, held = checkpoint.get_internal_representation()
    if kind == "dict":
        folder.mkdir(parents=True)
        with open(folder / DICT_FILE, "wb") as file:
            dump(_with_added_keys(held, index, preprocessor), file)
        return
    checkpoint.to_directory(folder)
    if preprocessor is not None:
        with open(folder / PREPROCESSOR_FILE, "wb") as file:
            dump(preprocessor, file)
    if not storage.has_files(folder):  # most stores have no empty folders
        raise _is_empty(checkpoint)


def pack_snapshot(checkpoint: Checkpoint, index: int, preprocessor: Any) -> bytes:
    """A checkpoint as bytes, for one that is written nowhere. The arguments are those of :func:`write_snapshot`."""
    kind, held = checkpoint.get_internal_representation()
    if kind == "dict":
        return packing.pack_files({DICT_FILE: dumps(_with_added_keys(held, index, preprocessor))})
    if preprocessor is not None:
        checkpoint = Checkpoint.from_checkpoint(checkpoint)
        checkpoint.set_preprocessor(preprocessor)
    packed = checkpoint.to_bytes()
    if not packing.read_names(packed):
        raise _is_empty(checkpoint)
    return packed


def linked_copy(snapshot: Path) -> Path:
    """The files of a snapshot a second time, in a folder of its own beside it. It takes no room: they are links.

    A snapshot is moved to where checkpoints are kept, and may be deleted there while somebody still reads it.
    """
    copy = snapshot.parents[1] / f"{snapshot.name}-{uuid.uuid4().hex}"
    shutil.copytree(snapshot, copy, copy_function=_link)
    return copy


def _is_empty(checkpoint: Checkpoint) -> ValueError:
    return ValueError(f"{checkpoint} is empty: write the checkpoint's files before report()")


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if storage.lacks_room(error):
            raise
        # File systems without hard links say so in many ways.
        shutil.copy2(source, target)


def _with_added_keys(data: dict[str, Any], index: int, preprocessor: Any) -> dict[str, Any]:
    if preprocessor is None:
        preprocessor = data.get(PREPROCESSOR_KEY)
    return {**data, "_timestamp": int(time.time()), PREPROCESSOR_KEY: preprocessor, "_current_checkpoint_id": index}
