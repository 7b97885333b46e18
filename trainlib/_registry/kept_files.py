"""Files that a run keeps among its artifacts, so that another process can continue it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainlib import _storage as storage


@dataclass(frozen=True)
class KeptFile:
    """A file in a small folder. Stores that hold no single files hold folders."""

    folder: str
    name: str

    def location(self, artifact_uri: str) -> str:
        """Where the folder of the file is, for a run with these artifacts."""
        return storage.join(artifact_uri, self.folder)

    def load(self, artifact_uri: str) -> bytes | None:
        """What a run keeps in it; None if it keeps no such file."""
        location = self.location(artifact_uri)
        if not storage.exists(location):
            return None
        with tempfile.TemporaryDirectory() as temporary:
            storage.download(location, Path(temporary))
            file = Path(temporary) / self.name
            return file.read_bytes() if file.exists() else None

    def save(self, artifact_uri: str, data: bytes, beside: Mapping[str, bytes] | None = None) -> None:
        """Keep this with a run, in place of what its folder had before.

        Args:
            artifact_uri: Where the artifacts of the run are.
            data: The file.
            beside: Other files of the same folder, by name.
        """
        location = self.location(artifact_uri)
        storage.delete(location)
        with tempfile.TemporaryDirectory() as temporary:
            staged = Path(temporary) / self.folder
            staged.mkdir()
            for name, content in {**(beside or {}), self.name: data}.items():
                (staged / name).write_bytes(content)
            storage.upload(staged, location)


TRAINER_SETTINGS = KeptFile("trainer", "settings.pkl")
"""The pickled settings of the trainer or the tuner."""
ENVIRONMENT = KeptFile("trainer", "environment.json")
"""What it ran with: Python, packages and code."""
PREPROCESSOR = KeptFile("preprocessor", "preprocessor.pkl")
"""The pickled preprocessor, fitted."""
