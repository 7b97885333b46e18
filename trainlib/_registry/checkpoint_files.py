"""The files of checkpoints: where they wait, where they are kept, and what a person finds in the training's own folder."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainlib import _storage as storage
from trainlib._registry.checkpoint_shelf import CheckpointShelf
from trainlib._registry.patience import Patience
from trainlib._registry.retention import SavedCheckpoint
from trainlib.errors import ConnectionFailedError

__all__ = ["CheckpointFiles"]

# How long to wait before the store is tried again. What fails once more after the last pause has failed.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
# Errors that the same try would give again.
_HOPELESS = (
    *(ValueError, TypeError, ImportError, FileNotFoundError, PermissionError, NotADirectoryError),
    ConnectionFailedError,  # MLflow has been waited for
)


class CheckpointFiles:
    """The files of one run's checkpoints. It knows nothing of which there are."""

    def __init__(self, *, run_id: str, artifact_root: str, log_dir: Path, patience: Patience) -> None:
        """
        Args:
            run_id: The run.
            artifact_root: Where its experiment keeps artifacts.
            log_dir: The training's own folder, which shows the checkpoints.
            patience: How long to wait for MLflow, where checkpoints are kept through it.
        """
        self._patience = patience
        self._through_mlflow = storage.is_through_mlflow(artifact_root)
        root = storage.local_path(artifact_root)
        self.is_local = root is not None
        """Whether checkpoints are kept on this disk. A commit is a rename then, and needs no worker."""
        self.shelf = CheckpointShelf(log_dir, is_local=self.is_local)
        """What a person finds of them in the training's own folder."""
        self.staging = str(root / ".staging" / run_id if root else Path(tempfile.gettempdir(), f"trainlib-{run_id}"))
        """The folder that workers write snapshots into."""

    def make_staging_folder(self) -> str:
        """The folder that workers write snapshots into, made where this process can see it."""
        while True:
            try:
                Path(self.staging).mkdir(parents=True, exist_ok=True)
                return self.staging
            except FileNotFoundError:  # another trial has just removed the folder that all of them have in common
                continue

    def clear_staging(self) -> None:
        """Remove snapshots that were never committed."""
        shutil.rmtree(self.staging, ignore_errors=True)
        parent = Path(self.staging).parent
        if parent.name == ".staging":
            with contextlib.suppress(OSError):  # others still use it, or have removed it
                parent.rmdir()

    def in_store(self, act: Callable[[], None]) -> None:
        """Do something where checkpoints are kept. What fails is tried again. A store behind MLflow is away when it is."""
        for pause in PAUSES_S:
            try:
                return self._patience.unwatched(act) if self._through_mlflow else act()
            except _HOPELESS:
                raise
            except Exception:
                time.sleep(pause)
        return act()

    def delete(self, saved: SavedCheckpoint) -> None:
        """Delete the files of a checkpoint. On a disk, the folder of the logged model around them goes too."""
        folder = saved.location.rsplit("/", 2)[0] if self.is_local else saved.location
        self.in_store(lambda: storage.delete(folder))
