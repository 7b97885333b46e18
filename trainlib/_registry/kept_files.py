"""Files that a run keeps among its artifacts, so that another process can continue it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainlib import _storage as storage


@dataclass(frozen=True)
class KeptFile:
    """A file with a folder of its own. Stores that hold no single files hold folders."""

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
            return (Path(temporary) / self.name).read_bytes()

    def save(self, artifact_uri: str, data: bytes) -> None:
        """Keep this with a run, in place of what it kept before."""
        location = self.location(artifact_uri)
        storage.delete(location)
        with tempfile.TemporaryDirectory() as temporary:
            staged = Path(temporary) / self.folder
            staged.mkdir()
            (staged / self.name).write_bytes(data)
            storage.upload(staged, location)


TRAINER_SETTINGS = KeptFile("trainer", "settings.pkl")
"""The pickled settings of the trainer or the tuner."""
PREPROCESSOR = KeptFile("preprocessor", "preprocessor.pkl")
"""The pickled preprocessor, fitted."""
