"""An fsspec store, ``chaos://``, that fails for as long as somebody wants it to. A folder on this disk stands behind it.

``chaos:///a/b`` is the folder ``/a/b``. Workers import this module too: uploads are made by them.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import fsspec

from tests.stores import FolderStore

FAILS = "fails"
"""While a file of this name is in a folder, every upload below that folder fails."""


class ChaosFileSystem(FolderStore):
    """A local folder whose uploads can be made to fail. One that fails leaves half a file."""

    protocol = "chaos"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("chaos://").strip("/")

    def put_file(self, lpath: str, rpath: str, callback: Any = None, **kwargs: Any) -> None:
        data = Path(lpath).read_bytes()
        if any((folder / FAILS).exists() for folder in Path(rpath).parents):
            Path(rpath).write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), rpath)
        Path(rpath).write_bytes(data)


fsspec.register_implementation("chaos", ChaosFileSystem, clobber=True)
