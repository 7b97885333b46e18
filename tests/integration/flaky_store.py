"""An fsspec store, ``flaky://``, that fails one upload in so many, or takes its time. A folder on this disk stands behind it.

Workers import this module too: uploads are made by them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

ROOT = "FLAKY_STORE_ROOT"
EVERY = "FLAKY_STORE_EVERY"
SECONDS = "FLAKY_STORE_SECONDS"
"""How long the upload of a checkpoint's file takes."""


class FlakyFileSystem(LocalFileSystem):
    """``flaky://bucket/path`` is the folder ``bucket/path`` below ``$FLAKY_STORE_ROOT``."""

    protocol = "flaky"
    cachable = False

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

    def get_file(self, rpath: str, lpath: str, callback: Any = None, outfile: Any = None, **kwargs: Any) -> None:
        if Path(rpath).is_dir():
            os.makedirs(lpath, exist_ok=True)
        else:
            Path(lpath).write_bytes(Path(rpath).read_bytes())


fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
