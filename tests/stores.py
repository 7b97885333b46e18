"""What the fsspec stores of the tests have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem


class FolderStore(LocalFileSystem):
    """A store with a scheme of its own, and a folder of this disk behind it."""

    cachable = False

    def get_file(self, rpath: str, lpath: str, callback: Any = None, outfile: Any = None, **kwargs: Any) -> None:
        if Path(rpath).is_dir():
            os.makedirs(lpath, exist_ok=True)
        else:
            Path(lpath).write_bytes(Path(rpath).read_bytes())
