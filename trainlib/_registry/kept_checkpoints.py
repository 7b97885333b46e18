"""Which checkpoints of a run there are, which of them somebody reads, and which of them go."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainlib._registry.checkpoint_files import CheckpointFiles
from trainlib._registry.logged_models import checkpoint_name
from trainlib._registry.patience import Patience, short
from trainlib._registry.retention import SavedCheckpoint, best, expendable
from trainlib.config import CheckpointConfig

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["KeptCheckpoints"]


class KeptCheckpoints:
    """The saved checkpoints of one run. Those that its config does not keep are deleted, unless somebody reads them."""

    def __init__(
        self,
        client: MlflowClient,
        *,
        files: CheckpointFiles,
        config: CheckpointConfig,
        saved: Iterable[SavedCheckpoint],
        patience: Patience,
    ) -> None:
        """
        Args:
            client: A client of the run's store.
            files: Their files.
            config: Which checkpoints are kept.
            saved: The checkpoints that earlier processes committed.
            patience: How long to wait for MLflow.
        """
        self._client = client
        self._files = files
        self._config = config
        self._patience = patience
        self._saved = list(saved)
        self._in_memory: SavedCheckpoint | None = None
        """The newest one, if it is written nowhere."""
        self._in_use: SavedCheckpoint | None = None
        """What the present attempt started from. Its ranks read it whenever they want to, so it stays."""
        self._held: list[SavedCheckpoint] = []
        self._lock = threading.Lock()
        """Guards what is saved and what is held, so that nothing is held that is about to be deleted."""
        self._to_delete: list[SavedCheckpoint] = []
        """Those that could not be deleted when they should have been."""

    def newest(self) -> SavedCheckpoint | None:
        """The checkpoint that a retry resumes from."""
        if self._in_memory is not None and self._in_memory.held is not None and self._in_memory.held.is_lost:
            self._in_memory = None
        return max(self._known(), key=lambda checkpoint: checkpoint.index, default=None)

    def _known(self) -> list[SavedCheckpoint]:
        return [*self._saved, *([self._in_memory] if self._in_memory is not None else [])]

    def newer_than(self, index: int) -> list[SavedCheckpoint]:
        """Those with a higher number, oldest first. One that is in memory alone is among them."""
        newer = [known for known in self._known() if known.index > index]
        return sorted(newer, key=lambda checkpoint: checkpoint.index)

    def best(self) -> list[SavedCheckpoint]:
        """The N best checkpoints, the best of them last."""
        return best(self._saved, self._config)

    def show(self) -> None:
        """Show in the training's own folder which checkpoint is the newest, and which are the best by their score."""
        ranked = self.best() if self._config.checkpoint_score_attribute is not None else []
        self._files.shelf.mark(self.newest(), ranked[::-1][: self._config.num_to_keep or 1])

    def add(self, saved: SavedCheckpoint) -> None:
        """Another one is saved."""
        with self._lock:
            self._saved.append(saved)

    def hold(self, checkpoint: SavedCheckpoint) -> None:
        """Another one is in memory alone. The one before goes."""
        self._in_memory = checkpoint

    def use_newest(self) -> SavedCheckpoint | None:
        """The newest checkpoint, for an attempt that starts from it. It is kept until :meth:`release`."""
        self._in_use = newest = self.newest()
        return newest

    def release(self) -> None:
        """Nobody reads the checkpoint any more that the attempt started from."""
        self._in_use = None

    @contextmanager
    def hold_newest(self) -> Iterator[SavedCheckpoint]:
        """The newest checkpoint, which is not deleted as long as this lasts, even when newer ones are saved."""
        with self._lock:
            checkpoint = max(self._saved, key=lambda saved: saved.index)
            self._held.append(checkpoint)
        try:
            yield checkpoint
        finally:
            with self._lock:
                self._held.remove(checkpoint)

    def prune(self) -> list[str]:
        """Delete the checkpoints that the config does not keep, except those that somebody may be reading.

        One that cannot be deleted is tried again the next time. Returns what a person should know of it.
        """
        with self._lock:
            read = [self._in_use, *self._held]
            gone = [old for old in expendable(self._saved, self._config) if old not in read]
            self._saved = [saved for saved in self._saved if saved not in gone]
            gone, self._to_delete = [*self._to_delete, *gone], []
        remarks = []
        for old in gone:
            try:
                self._delete(old)
            except Exception as error:
                self._to_delete.append(old)
                remarks.append(f"{checkpoint_name(old.index)} could not be deleted: {short(error)}")
        return remarks

    def _delete(self, saved: SavedCheckpoint) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._patience(self._client.delete_logged_model, saved.model_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":  # an earlier try has deleted it
                raise
        self._files.shelf.remove(saved)
        self._files.delete(saved)
