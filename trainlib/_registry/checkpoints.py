"""Saving checkpoints as MLflow logged models: visible only when complete, found again by any process.

A logged model is created as PENDING, its files are brought to its artifact location, and then it becomes READY.
Only READY ones count. What a killed process left behind is removed by the next one. MLflow and the store may be away for
a while: both are tried again, in the background. What goes wrong after a checkpoint is READY is a warning.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._registry.checkpoint_files import CheckpointFiles
from trainlib._registry.kept_checkpoints import KeptCheckpoints
from trainlib._registry.logged_models import (
    UnfinishedCheckpoint,
    checkpoint_name,
    checkpoint_tags,
    location_of,
    read_checkpoints,
)
from trainlib._registry.patience import Patience, short
from trainlib._registry.retention import SavedCheckpoint
from trainlib._rooms import checkpoint_class
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Moves a folder to a location: (folder, location). It runs where the folder is, which may be another machine.
Upload = Callable[[str, str], None]

_LOOK_S = 0.5


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
            log_dir: The training's own folder, which shows the checkpoints.
            config: Which checkpoints are kept.
            saved: The checkpoints that earlier processes committed.
            patience: How long to wait for MLflow.
        """
        self._patience = patience or Patience(600.0, client.tracking_uri)
        self._client = client
        self._run_id = run_id
        self._experiment_id = experiment_id
        self.files = CheckpointFiles(
            run_id=run_id, artifact_root=artifact_root, log_dir=log_dir, patience=self._patience
        )
        self.kept = KeptCheckpoints(client, files=self.files, config=config, saved=saved, patience=self._patience)
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

    # -- what there is --------------------------------------------------------------------------------

    def newest(self) -> SavedCheckpoint | None:
        """The checkpoint that a retry resumes from."""
        return self.kept.newest()

    # -- saving ---------------------------------------------------------------------------------------

    def attempt_starts(self) -> SavedCheckpoint | None:
        """Another attempt begins. Gives the checkpoint that it starts from, which is kept while the attempt lasts."""
        newest = self.kept.use_newest()
        self._created, self._over = {}, set()
        self.settled = newest.index if newest is not None else -1
        return newest

    def attempt_ended(self) -> None:
        """The attempt is over. Nobody reads the checkpoint that it started from any more."""
        self.kept.release()
        self._prune()

    def create(
        self,
        *,
        index: int,
        iteration: int,
        metrics: Mapping[str, Any],
        score: float | None,
        seconds: float,
        kind: str = "",
    ) -> SavedCheckpoint:
        """Announce a checkpoint to MLflow. Its logged model is PENDING until it is committed.

        Args:
            index: Its number among the checkpoints of the training.
            iteration: The iteration that it was reported with.
            metrics: What was reported with it.
            score: What it is ranked by.
            seconds: How long the training has taken so far.
            kind: The framework whose class it was reported as.

        Raises:
            ConnectionFailedError: MLflow does not accept it, or is away for too long.
        """
        from mlflow.exceptions import MlflowException

        name = checkpoint_name(index)
        tags = checkpoint_tags(
            index=index, iteration=iteration, seconds=seconds, score=score, metrics=metrics, kind=kind
        )
        try:
            model = self._patience(
                self._client.create_logged_model,
                experiment_id=self._experiment_id,
                name=name,
                source_run_id=self._run_id,
                tags=tags,
                model_type="checkpoint",
            )
        except MlflowException as error:
            raise ConnectionFailedError(f"MLflow did not accept {name}: {short(error)}") from error
        location = location_of(model, index, self._client.tracking_uri)
        return SavedCheckpoint(index, iteration, model.model_id, location, score, dict(metrics), seconds, kind)

    def hold(self, checkpoint: SavedCheckpoint) -> None:
        """Make a checkpoint the newest one that is in memory alone: ``num_to_keep`` is 0. MLflow does not hear of it."""
        self.kept.hold(checkpoint)
        self.settled = max(self.settled, checkpoint.index)

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
            self.files.in_store(lambda: upload(folder, pending.location))
            flush_metrics()
            self._patience(self._client.finalize_logged_model, pending.model_id, "READY")
        except BaseException:
            self._discard(pending)
            raise
        self.kept.add(pending)
        # From here on it counts, whatever happens.
        name = checkpoint_name(pending.index)
        for act, what in ((self._log_output, "listed as an output of its run"), (self.files.shelf.put, "linked")):
            try:
                act(pending)
            except Exception as error:
                self._remarks.append(f"{name} is saved, but could not be {what}: {short(error)}")
        self._prune()

    def _prune(self) -> None:
        self._remarks += self.kept.prune()
        with contextlib.suppress(OSError):  # a disk that is full: the checkpoints matter more than how they are shown
            self.kept.show()

    def _log_output(self, saved: SavedCheckpoint) -> None:
        from mlflow.entities import LoggedModelOutput

        self._patience(
            self._client.log_outputs, self._run_id, [LoggedModelOutput(saved.model_id, step=saved.iteration)]
        )

    def _discard(self, pending: SavedCheckpoint) -> None:
        """Leave nothing of a checkpoint that could not be saved. If MLflow is away, its logged model goes later."""
        try:
            self.files.delete(pending)
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
        folder = Path(self.files.make_staging_folder()) / uuid.uuid4().hex / checkpoint_name(index)
        with other.kept.hold_newest() as source:
            storage.download(source.location, folder)
        pending = self.create(
            index=index,
            iteration=iteration,
            metrics=source.metrics,
            score=source.score,
            seconds=seconds,
            kind=source.kind,
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

    def remove_unfinished(self, unfinished: Iterable[UnfinishedCheckpoint]) -> None:
        """Remove what earlier processes of this run were saving when they ended."""
        for left in unfinished:
            storage.delete(left.location)
            self._client.delete_logged_model(left.model_id)
        self.files.clear_staging()

    def remove_strays(self) -> None:
        """Remove logged models that are still PENDING, if MLflow was away: nothing is being saved now.

        One that could not be deleted then is among them, and one that MLflow created without being able to say so.
        """
        if self._patience.was_away:
            for left in read_checkpoints(self._client, self._experiment_id, self._run_id).unfinished:
                storage.delete(left.location)
                self._client.delete_logged_model(left.model_id)

    def close(self) -> None:
        """Wait for all commits under way, and remove what was never committed."""
        for thread in (self._creations, self._thread):
            thread.shutdown(wait=not self._gave_up, cancel_futures=self._gave_up)
        if not self._gave_up:
            for index, created in self._created.items():
                if index not in self._over:  # whoever recorded its report was interrupted halfway
                    self._discard(created)
        self.files.clear_staging()


def _upload_from_here(folder: str, location: str) -> None:
    storage.upload(Path(folder), location)


def as_checkpoint(saved: SavedCheckpoint, *, trust: bool = True) -> Checkpoint:
    """A checkpoint that a user can read, of the class that was reported. A training of this registry has written it, so it
    is trusted; what is known from elsewhere may not be."""
    kind = checkpoint_class(saved.kind)
    return kind._of_held(saved.held) if saved.held is not None else kind(saved.location, trust=trust)
