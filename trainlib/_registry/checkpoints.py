"""Saving checkpoints as MLflow logged models: visible only when complete, found again by any process.

A logged model is created as PENDING, its files are brought to its artifact location, and then it becomes READY.
Only READY ones count. What a killed process left behind is removed by the next one.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._registry.logged_models import UnfinishedCheckpoint, checkpoint_name, checkpoint_tags, location_of
from trainlib._registry.retention import SavedCheckpoint, best, expendable
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Moves a folder to a location: (folder, location). It runs where the folder is, which may be another machine.
Upload = Callable[[str, str], None]


class CheckpointStore:
    """The checkpoints of one MLflow run. They are committed in the background, one after the other."""

    def __init__(
        self,
        client: MlflowClient,
        *,
        run_id: str,
        experiment_id: str,
        artifact_root: str,
        log_dir: Path,
        config: CheckpointConfig,
        saved: Iterable[SavedCheckpoint] = (),
    ) -> None:
        """
        Args:
            client: A client of the run's store.
            run_id: The run.
            experiment_id: The experiment of the run.
            artifact_root: Where that experiment keeps artifacts.
            log_dir: The training's own folder, which gets links to checkpoints on this disk.
            config: Which checkpoints are kept.
            saved: The checkpoints that earlier processes committed.
        """
        self._client = client
        self._run_id = run_id
        self._experiment_id = experiment_id
        self._config = config
        self._log_dir = log_dir
        self.in_use: SavedCheckpoint | None = None
        """What the present attempt started from. Its ranks read it whenever they want to, so it stays."""
        self._held: list[SavedCheckpoint] = []
        self._saved = list(saved)
        self._lock = threading.Lock()
        """Guards what is saved and what is held, so that nothing is held that is about to be deleted."""
        self._commits: list[Future[None]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        root = storage.local_path(artifact_root)
        self.is_local = root is not None
        """Whether checkpoints are kept on this disk. A commit is a rename then, and needs no worker."""
        self.staging = str(root / ".staging" / run_id if root else Path(tempfile.gettempdir(), f"trainlib-{run_id}"))

    # -- what there is --------------------------------------------------------------------------------

    def newest(self) -> SavedCheckpoint | None:
        """The checkpoint that a retry resumes from."""
        return max(self._saved, key=lambda checkpoint: checkpoint.index, default=None)

    def committed_after(self, index: int) -> list[SavedCheckpoint]:
        """Those with a higher number, oldest first."""
        newer = [saved for saved in list(self._saved) if saved.index > index]
        return sorted(newer, key=lambda checkpoint: checkpoint.index)

    def best(self) -> list[SavedCheckpoint]:
        """The N best checkpoints, the best of them last."""
        return best(self._saved, self._config)

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

    # -- saving ---------------------------------------------------------------------------------------

    def make_staging_folder(self) -> str:
        """The folder that workers write snapshots into, made where this process can see it."""
        while True:
            try:
                Path(self.staging).mkdir(parents=True, exist_ok=True)
                return self.staging
            except FileNotFoundError:  # another trial has just removed the folder that all of them have in common
                continue

    def create(
        self, *, index: int, iteration: int, metrics: Mapping[str, Any], score: float | None, seconds: float
    ) -> SavedCheckpoint:
        """Announce a checkpoint to MLflow. Its logged model is PENDING until it is committed.

        Args:
            index: Its number among the checkpoints of the training.
            iteration: The iteration that it was reported with.
            metrics: What was reported with it.
            score: What it is ranked by.
            seconds: How long the training has taken so far.

        Raises:
            ConnectionFailedError: MLflow does not accept it.
        """
        from mlflow.exceptions import MlflowException

        name = checkpoint_name(index)
        try:
            model = self._client.create_logged_model(
                experiment_id=self._experiment_id,
                name=name,
                source_run_id=self._run_id,
                tags=checkpoint_tags(index=index, iteration=iteration, seconds=seconds, score=score, metrics=metrics),
                model_type="checkpoint",
            )
        except MlflowException as error:
            raise ConnectionFailedError(f"MLflow did not accept {name}: {error}") from error
        location = location_of(model, index, self._client.tracking_uri)
        return SavedCheckpoint(index, iteration, model.model_id, location, score, dict(metrics), seconds)

    def commit_in_background(
        self, pending: SavedCheckpoint, folder: str, *, upload: Upload, flush_metrics: Callable[[], None]
    ) -> None:
        """Commit a checkpoint while the training goes on.

        First ``upload`` brings the staged ``folder`` to the checkpoint's location, then ``flush_metrics`` is called,
        and then the checkpoint becomes visible: it must never be newer than the metrics that lead up to it.
        """
        self._commits = [commit for commit in self._commits if not commit.done() or commit.exception()]
        self._commits.append(self._thread.submit(self._commit, pending, folder, upload, flush_metrics))

    def _commit(self, pending: SavedCheckpoint, folder: str, upload: Upload, flush_metrics: Callable[[], None]) -> None:
        from mlflow.entities import LoggedModelOutput

        try:
            upload(folder, pending.location)
        except Exception:
            self._client.delete_logged_model(pending.model_id)
            raise
        flush_metrics()
        self._client.finalize_logged_model(pending.model_id, "READY")
        with self._lock:
            self._saved.append(pending)
        shutil.rmtree(Path(folder).parent, ignore_errors=True)
        self._client.log_outputs(self._run_id, [LoggedModelOutput(pending.model_id, step=pending.iteration)])
        if self.is_local:
            self._link(pending.index).unlink(missing_ok=True)
            self._link(pending.index).symlink_to(pending.location)
        self.prune()

    def copy_newest_of(self, other: CheckpointStore, *, iteration: int, seconds: float) -> None:
        """Save a copy of another run's newest checkpoint as the newest one of this run.

        Args:
            other: The checkpoints of the other run.
            iteration: How far this training is.
            seconds: How long this training has taken so far.
        """
        newest = self.newest()
        index = newest.index + 1 if newest is not None else 0
        folder = Path(self.make_staging_folder()) / uuid.uuid4().hex / checkpoint_name(index)
        with other.hold_newest() as source:
            storage.download(source.location, folder)
        pending = self.create(
            index=index, iteration=iteration, metrics=source.metrics, score=source.score, seconds=seconds
        )
        self._commit(pending, str(folder), upload=_upload_from_here, flush_metrics=lambda: None)

    def wait(self, timeout: float) -> int:
        """Wait for commits under way. Returns how many still are after ``timeout`` seconds."""
        return len(concurrent.futures.wait(self._commits, timeout).not_done)

    def settle(self) -> list[BaseException]:
        """Wait for all commits under way. Returns the errors of those that failed; each error is returned once."""
        commits, self._commits = self._commits, []
        return [error for commit in commits if (error := commit.exception()) is not None]

    # -- removing -------------------------------------------------------------------------------------

    def prune(self) -> None:
        """Delete the checkpoints that the config does not keep, except those that somebody may be reading."""
        with self._lock:
            read = [self.in_use, *self._held]
            gone = [old for old in expendable(self._saved, self._config) if old not in read]
            self._saved = [saved for saved in self._saved if saved not in gone]
        for old in gone:
            self._delete(old)

    def remove_unfinished(self, unfinished: Iterable[UnfinishedCheckpoint]) -> None:
        """Remove what earlier processes of this run were saving when they ended."""
        for left in unfinished:
            storage.delete(left.location)
            self._client.delete_logged_model(left.model_id)
        self.clear_staging()

    def clear_staging(self) -> None:
        """Remove snapshots that were never committed."""
        shutil.rmtree(self.staging, ignore_errors=True)
        parent = Path(self.staging).parent
        if parent.name == ".staging":
            with contextlib.suppress(OSError):  # others still use it, or have removed it
                parent.rmdir()

    def close(self) -> None:
        """Wait for all commits under way, and remove what was never committed."""
        self._thread.shutdown(wait=True)
        self.clear_staging()

    def _delete(self, saved: SavedCheckpoint) -> None:
        self._client.delete_logged_model(saved.model_id)
        self._link(saved.index).unlink(missing_ok=True)
        # On a disk, the folder of the logged model around it goes too.
        storage.delete(saved.location.rsplit("/", 2)[0] if self.is_local else saved.location)

    def _link(self, index: int) -> Path:
        """Where a person who looks into the training's own folder finds a checkpoint."""
        return self._log_dir / checkpoint_name(index)


def _upload_from_here(folder: str, location: str) -> None:
    storage.upload(Path(folder), location)


def as_checkpoint(saved: SavedCheckpoint) -> Checkpoint:
    """A checkpoint that a user can read."""
    return Checkpoint(saved.location)
