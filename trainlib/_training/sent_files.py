"""Files that ranks have sent, such as traces of a profiler."""

from __future__ import annotations

import zlib
from pathlib import Path

from trainlib._execution.events import FileSent
from trainlib._registry.run import RegisteredRun

__all__ = ["SentFiles"]


class SentFiles:
    """Writes files into the training's folder as they come, and saves them with its MLflow run at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._has_failed = False

    def write(self, sent: FileSent) -> str | None:
        """Write a file. One of the same name is replaced: a retry sends its files again.

        Returns None, or what went wrong if that was not said before: a training does not fail for it.
        """
        file = self._folder / sent.name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(zlib.decompress(sent.content))
        except OSError as error:
            had_failed, self._has_failed = self._has_failed, True
            return None if had_failed else f"{sent.name} could not be written to {self._folder}: {error}"
        if sent.name not in self._names:
            self._names.append(sent.name)
        return None

    def save(self, run: RegisteredRun) -> str | None:
        """Save the files with the run. Returns None, or what went wrong: a training does not fail for it."""
        try:
            for name in self._names:
                file = self._folder / name
                run.patience(run.client.log_artifact, run.run_id, str(file), str(Path(name).parent))
        except Exception as error:
            return f"{name} could not be saved in MLflow: {error}. It is in {self._folder}"
        return None
