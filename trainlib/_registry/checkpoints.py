"""Saving checkpoints as MLflow logged models: visible only when complete, found again by any process.

A logged model is created as PENDING, its files are brought to its artifact location, and then it becomes READY.
Only READY ones count. What a killed process left behind is removed by the next one. MLflow and the store may be away for
a while: both are tried again, in the background. What goes wrong after a checkpoint is READY is a warning.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._registry.logged_models import (
    UnfinishedCheckpoint,
    checkpoint_name,
    checkpoint_tags,
    location_of,
    read_checkpoints,
)
from trainlib._registry.patience import Patience, short
from trainlib._registry.retention import SavedCheckpoint, best, expendable
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Moves a folder to a location: (folder, location). It runs where the folder is, which may be another machine.
Upload = Callable[[str, str], None]

# How long to wait before the store is tried again. What fails once more after the last pause has failed.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
_LOOK_S = 0.5
# Errors that the same try would give again.
_HOPELESS = (
    *(ValueError, TypeError, ImportError, FileNotFoundError, PermissionError, NotADirectoryError),
    ConnectionFailedError,  # MLflow has been waited for
)


@dataclass(frozen=True)
class LostCheckpoint:
    """A checkpoint that could not be saved."""

    index: int
    error: BaseException

    def __str__(self) -> str:
        return str(self.error)


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
        patience: Patience | None = None,
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
            patience: How long to wait for MLflow.
        """
        self._patience = patience or Patience(600.0, client.tracking_uri)
        self._client = client
        self._run_id = run_id
        self._experiment_id = experiment_id
        self._config = config
        self._log_dir = log_dir
        self._in_use: SavedCheckpoint | None = None
        """What the present attempt started from. Its ranks read it whenever they want to, so it stays."""
        self._held: list[SavedCheckpoint] = []
        self._saved = list(saved)
        self._lock = threading.Lock()
        """Guards what is saved and what is held, so that nothing is held that is about to be deleted."""
        self._to_delete: list[SavedCheckpoint] = []
        """Those that could not be deleted when they should have been."""
        self._created: dict[int, SavedCheckpoint] = {}
        """Those of this attempt that MLflow knows, and that are not over."""
        self._over: set[int] = set()
        """Those of this attempt that are saved, or could not be."""
        self._commits: dict[int, Future[None]] = {}
        self._gave_up = False
        """Whether commits were left under way, because somebody ended the training."""
        self._remarks: list[str] = []
        self.settled = -1
        """The newest checkpoint that is not being saved any more: it is saved, or could not be. They are saved in order."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        # Of its own: MLflow learns of a checkpoint, and its metrics with it, while others are still being uploaded.
        self._creations = ThreadPoolExecutor(1, thread_name_prefix="new-checkpoints")
        # An executor that is interrupted while it starts its thread starts another one later.
        self._committing, self._creating = threading.Lock(), threading.Lock()
        root = storage.local_path(artifact_root)
        self._through_mlflow = storage.is_through_mlflow(artifact_root)
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

    def attempt_starts(self) -> SavedCheckpoint | None:
        """Another attempt begins. Gives the checkpoint that it starts from, which is kept while the attempt lasts."""
        self._in_use = newest = self.newest()
        self._created, self._over = {}, set()
        self.settled = newest.index if newest is not None else -1
        return newest

    def attempt_ended(self) -> None:
        """The attempt is over. Nobody reads the checkpoint that it started from any more."""
        self._in_use = None
        self.prune()

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
            ConnectionFailedError: MLflow does not accept it, or is away for too long.
        """
        from mlflow.exceptions import MlflowException

        name = checkpoint_name(index)
        try:
            model = self._patience(
                self._client.create_logged_model,
                experiment_id=self._experiment_id,
                name=name,
                source_run_id=self._run_id,
                tags=checkpoint_tags(index=index, iteration=iteration, seconds=seconds, score=score, metrics=metrics),
                model_type="checkpoint",
            )
        except MlflowException as error:
            raise ConnectionFailedError(f"MLflow did not accept {name}: {short(error)}") from error
        location = location_of(model, index, self._client.tracking_uri)
        return SavedCheckpoint(index, iteration, model.model_id, location, score, dict(metrics), seconds)

    def has_heard_of(self, index: int) -> bool:
        """Whether the checkpoint with this number is being saved, is saved, or could not be."""
        return index in self._over or index in self._commits

    def create_in_background(self, **facts: Any) -> Future[SavedCheckpoint]:
        """:meth:`create` a checkpoint while the training goes on: MLflow may be away.

        One that is being saved already is not created again: whoever was interrupted while recording a report records it
        once more, and cannot know how far it came.
        """
        return self._creations.submit(self._create_once, facts)

    def _create_once(self, facts: dict[str, Any]) -> SavedCheckpoint:
        with self._creating:
            self._created = {index: created for index, created in self._created.items() if index not in self._over}
            index = facts["index"]
            if index not in self._created:
                self._created[index] = self.create(**facts)
            return self._created[index]

    def commit_in_background(
        self,
        index: int,
        pending: Future[SavedCheckpoint],
        folder: str,
        *,
        upload: Upload,
        flush_metrics: Callable[[], None],
    ) -> None:
        """Commit the checkpoint with this number while the training goes on.

        First ``upload`` brings the staged ``folder`` to the checkpoint's location, then ``flush_metrics`` is called,
        and then the checkpoint becomes visible: it must never be newer than the metrics that lead up to it.

        A checkpoint is committed once, however often this is called for it.
        """
        self._commits = {n: commit for n, commit in self._commits.items() if not commit.done() or commit.exception()}

        def commit() -> None:
            with self._committing:
                if index in self._over:
                    return
                try:
                    self._commit(pending.result(), folder, upload, flush_metrics)
                finally:
                    shutil.rmtree(Path(folder).parent, ignore_errors=True)
                    self._over.add(index)
                    self.settled = max(self.settled, index)

        self._commits[index] = self._thread.submit(commit)

    def _commit(self, pending: SavedCheckpoint, folder: str, upload: Upload, flush_metrics: Callable[[], None]) -> None:
        try:
            self._in_store(lambda: upload(folder, pending.location))
            flush_metrics()
            self._patience(self._client.finalize_logged_model, pending.model_id, "READY")
        except BaseException:
            self._discard(pending)
            raise
        with self._lock:
            self._saved.append(pending)
        # From here on it counts, whatever happens.
        name = checkpoint_name(pending.index)
        for act, what in ((self._log_output, "listed as an output of its run"), (self._make_link, "linked")):
            try:
                act(pending)
            except Exception as error:
                self._remarks.append(f"{name} is saved, but could not be {what}: {short(error)}")
        self.prune()

    def _log_output(self, saved: SavedCheckpoint) -> None:
        from mlflow.entities import LoggedModelOutput

        self._patience(
            self._client.log_outputs, self._run_id, [LoggedModelOutput(saved.model_id, step=saved.iteration)]
        )

    def _make_link(self, saved: SavedCheckpoint) -> None:
        if self.is_local:
            self._link(saved.index).unlink(missing_ok=True)
            self._link(saved.index).symlink_to(saved.location)

    def _discard(self, pending: SavedCheckpoint) -> None:
        """Leave nothing of a checkpoint that could not be saved. If MLflow is away, its logged model goes later."""
        try:
            self._in_store(lambda: storage.delete(self._folder_of(pending)))
        except Exception as error:
            self._remarks.append(f"what was uploaded of it is left at {pending.location}: {short(error)}")
        with contextlib.suppress(Exception):
            self._patience(self._client.delete_logged_model, pending.model_id)

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
        try:
            self._commit(pending, str(folder), upload=_upload_from_here, flush_metrics=lambda: None)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)

    def wait(self, timeout: float) -> int:
        """Wait for commits under way. Returns how many still are after ``timeout`` seconds."""
        return len(concurrent.futures.wait(self._commits.values(), timeout).not_done)

    def lost(self) -> list[LostCheckpoint]:
        """Those that could not be saved, among those whose commits are over. Nothing is waited for."""
        over = [(index, commit) for index, commit in list(self._commits.items()) if commit.done()]
        return [LostCheckpoint(index, error) for index, commit in over if (error := commit.exception()) is not None]

    def settle(self, *, give_up: Callable[[], bool] = lambda: False) -> list[LostCheckpoint]:
        """Wait for all commits under way. Returns those that could not be saved; each is returned once.

        Once ``give_up`` returns True, those that are still under way count as not saved.
        """
        while self.wait(timeout=_LOOK_S) and not give_up():
            pass
        lost = self.lost()
        left = [index for index, commit in self._commits.items() if not commit.done()]
        self._gave_up = self._gave_up or bool(left)
        self._commits = {}
        return [*lost, *(LostCheckpoint(index, TimeoutError("MLflow does not answer")) for index in left)]

    def remarks(self) -> list[str]:
        """What a person should know since the last call."""
        return [self._remarks.pop(0) for _ in range(len(self._remarks))]

    # -- removing -------------------------------------------------------------------------------------

    def prune(self) -> None:
        """Delete the checkpoints that the config does not keep, except those that somebody may be reading.

        One that cannot be deleted is a warning; it is tried again the next time.
        """
        with self._lock:
            read = [self._in_use, *self._held]
            gone = [old for old in expendable(self._saved, self._config) if old not in read]
            self._saved = [saved for saved in self._saved if saved not in gone]
            gone, self._to_delete = [*self._to_delete, *gone], []
        for old in gone:
            try:
                self._delete(old)
            except Exception as error:
                self._to_delete.append(old)
                self._remarks.append(f"{checkpoint_name(old.index)} could not be deleted: {short(error)}")

    def remove_unfinished(self, unfinished: Iterable[UnfinishedCheckpoint]) -> None:
        """Remove what earlier processes of this run were saving when they ended."""
        for left in unfinished:
            storage.delete(left.location)
            self._client.delete_logged_model(left.model_id)
        self.clear_staging()

    def remove_strays(self) -> None:
        """Remove logged models that are still PENDING, if MLflow was away: nothing is being saved now.

        One that could not be deleted then is among them, and one that MLflow created without being able to say so.
        """
        if self._patience.was_away:
            for left in read_checkpoints(self._client, self._experiment_id, self._run_id).unfinished:
                storage.delete(left.location)
                self._client.delete_logged_model(left.model_id)

    def clear_staging(self) -> None:
        """Remove snapshots that were never committed."""
        shutil.rmtree(self.staging, ignore_errors=True)
        parent = Path(self.staging).parent
        if parent.name == ".staging":
            with contextlib.suppress(OSError):  # others still use it, or have removed it
                parent.rmdir()

    def close(self) -> None:
        """Wait for all commits under way, and remove what was never committed."""
        for thread in (self._creations, self._thread):
            thread.shutdown(wait=not self._gave_up, cancel_futures=self._gave_up)
        if not self._gave_up:
            for index, created in self._created.items():
                if index not in self._over:  # whoever recorded its report was interrupted halfway
                    self._discard(created)
        self.clear_staging()

    def _delete(self, saved: SavedCheckpoint) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._patience(self._client.delete_logged_model, saved.model_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":  # an earlier try has deleted it
                raise
        self._link(saved.index).unlink(missing_ok=True)
        self._in_store(lambda: storage.delete(self._folder_of(saved)))

    def _in_store(self, act: Callable[[], None]) -> None:
        """Do something where checkpoints are kept. What fails is tried again. A store behind MLflow is away when it is."""
        for pause in PAUSES_S:
            try:
                return self._patience.unwatched(act) if self._through_mlflow else act()
            except _HOPELESS:
                raise
            except Exception:
                time.sleep(pause)
        return act()

    def _folder_of(self, saved: SavedCheckpoint) -> str:
        """What is deleted with a checkpoint. On a disk, the folder of the logged model around it goes too."""
        return saved.location.rsplit("/", 2)[0] if self.is_local else saved.location

    def _link(self, index: int) -> Path:
        """Where a person who looks into the training's own folder finds a checkpoint."""
        return self._log_dir / checkpoint_name(index)


def _upload_from_here(folder: str, location: str) -> None:
    storage.upload(Path(folder), location)


def as_checkpoint(saved: SavedCheckpoint) -> Checkpoint:
    """A checkpoint that a user can read. A training of this registry has written it, so it is trusted."""
    return Checkpoint(saved.location, trust=True)
