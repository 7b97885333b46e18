"""An fsspec store, ``flaky://``, that fails one upload in so many, or takes its time. A folder on this disk stands behind it.

Workers import this module too: uploads are made by them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import fsspec

from tests.stores import FolderStore

ROOT = "FLAKY_STORE_ROOT"
EVERY = "FLAKY_STORE_EVERY"
SECONDS = "FLAKY_STORE_SECONDS"
"""How long the upload of a checkpoint's file takes."""


class FlakyFileSystem(FolderStore):
    """``flaky://bucket/path`` is the folder ``bucket/path`` below ``$FLAKY_STORE_ROOT``."""

    protocol = "flaky"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        inner = str(path).removeprefix("flaky://").lstrip("/")
        root = os.environ[ROOT]
        return f"{root}/{inner.removeprefix(root.lstrip('/')).lstrip('/')}".rstrip("/")

    def put_file(self, lpath: str, rpath: str, callback: Any = None, **kwargs: Any) -> None:
        count = Path(os.environ[ROOT]) / "uploads"
        with open(count, "a") as file:
            file.write(".")
        every = int(os.environ.get(EVERY, "1000000"))
        if "checkpoint_" in rpath:
            time.sleep(float(os.environ.get(SECONDS, "0")))
        if "checkpoint_" in rpath and count.stat().st_size % every == 0:
            Path(rpath).write_text("half")
            raise OSError("503 SlowDown: the store is busy")
        Path(rpath).write_bytes(Path(lpath).read_bytes())


fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
