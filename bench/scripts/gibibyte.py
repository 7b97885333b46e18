"""A checkpoint folder of 1 GiB."""

from __future__ import annotations

import os
from pathlib import Path

FILES = 8
FILE_BYTES = 128 * 1024**2


def write(folder: Path) -> Path:
    """Write it and sync it to disk, so that the measurement does not wait for the disk."""
    folder.mkdir()
    for number in range(FILES):
        (folder / f"shard_{number}").write_bytes(os.urandom(FILE_BYTES))
    os.sync()
    return folder
