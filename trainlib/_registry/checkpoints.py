"""Checkpoints as MLflow logged models: visible only when complete, found again by any process.

A logged model is created as PENDING, its files are brought to its artifact location, and then it becomes
READY. Only READY ones count. What a killed process left behind is cleared away by the next one.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._execution.events import StagedCheckpoint
from trainlib._registry.retention import SavedCheckpoint, best, expendable
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Brings a staged folder to a location from where its files are: (folder, location).
Store = Callable[[str, str], None]

_LONGEST_TAG = 4500


class CheckpointStore:
    """The checkpoints of one MLflow run. Commits happen one after the other, behind the training."""

    def __init__(
        self,
        client: MlflowClient,
        *,
        run_id: str,
        experiment_id: str,
        artifact_root: str,
        log_dir: Path,
        config: CheckpointConfig,
    ) -> None:
        self._client = client
        self._run_id = run_id
        self._experiment_id = experiment_id
        self._config = config
        self._log_dir = log_dir
        self.in_use: SavedCheckpoint | None = None
        """What the present attempt started from: its ranks read it in their own time."""
        self._lent: list[SavedCheckpoint] = []
        self._saved: list[SavedCheckpoint] = []
        self._choosing = threading.Lock()
        """Held while what is saved changes: none is lent that is about to go."""
        self._commits: list[Future[None]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        root = storage.local_path(artifact_root)
        self.is_local = root is not None
        """Whether checkpoints are kept on this disk: a commit is then a rename, and needs no worker."""
        self.staging = str(root / ".staging" / run_id if root else Path(tempfile.gettempdir(), f"trainlib-{run_id}"))

    # -- what there is --------------------------------------------------------------------------------

    def load(self) -> None:
        """Find what earlier processes committed, and clear away what they did not."""
        pending: list[str] = []
        for model in models_of_run(self._client, self._experiment_id, self._run_id):
            saved = as_saved(model)
            if saved is not None:
                self._saved.append(saved)
            elif str(model.status) != "READY":
                pending.append(model.model_id)
                storage.delete(model.artifact_location)
        for model_id in pending:
            self._client.delete_logged_model(model_id)
        self.clear_staging()

    def newest(self) -> SavedCheckpoint | None:
        """The one that a retry resumes from."""
        return max(self._saved, key=lambda checkpoint: checkpoint.index, default=None)

    def committed_after(self, index: int) -> list[SavedCheckpoint]:
        """Those with a higher number, oldest first."""
        newer = [saved for saved in list(self._saved) if saved.index > index]
        return sorted(newer, key=lambda checkpoint: checkpoint.index)

    def best(self) -> list[SavedCheckpoint]:
        """The N best, the best of them last."""
        return best(self._saved, self._config)

    # -- saving ---------------------------------------------------------------------------------------

    def prepare_staging(self) -> str:
        """The folder that workers snapshot into, made where this process can see it."""
        while True:
            try:
                Path(self.staging).mkdir(parents=True, exist_ok=True)
                return self.staging
            except FileNotFoundError:  # another trial has just removed the folder that all of them have in common
                continue

    def create(
        self, staged: StagedCheckpoint, iteration: int, metrics: dict[str, Any], seconds: float
    ) -> SavedCheckpoint:
        """What a staged checkpoint will be once it is committed; its logged model is still PENDING.

        Raises:
            ConnectionFailedError: MLflow does not take it.
        """
        from mlflow.exceptions import MlflowException

        tags = {
            "trainlib.checkpoint": str(staged.index),
            "trainlib.iteration": str(iteration),
            "trainlib.seconds": f"{seconds:.3f}",
        }
        if staged.score is not None:
            tags["trainlib.score"] = repr(staged.score)
        text = json.dumps(metrics)
        if len(text) <= _LONGEST_TAG:
            tags["trainlib.metrics"] = text
        try:
            model = self._client.create_logged_model(
                experiment_id=self._experiment_id,
                name=f"checkpoint_{staged.index:06d}",
                source_run_id=self._run_id,
                tags=tags,
                model_type="checkpoint",
            )
        except MlflowException as error:
            raise ConnectionFailedError(f"MLflow did not take checkpoint_{staged.index:06d}: {error}") from error
        location = _location(model, staged.index)
        return SavedCheckpoint(staged.index, iteration, model.model_id, location, staged.score, metrics, seconds)

    def commit_behind(self, pending: SavedCheckpoint, folder: str, *, before: Callable[[], None], store: Store) -> None:
        """Bring the staged folder to its place and make the model READY, behind the training and after ``before``."""
        self._commits = [commit for commit in self._commits if not commit.done() or commit.exception()]
        self._commits.append(self._thread.submit(self._commit, pending, folder, before, store))

    def _commit(self, pending: SavedCheckpoint, folder: str, before: Callable[[], None], store: Store) -> None:
        from mlflow.entities import LoggedModelOutput

        try:
            store(folder, pending.location)
        except Exception:
            self._client.delete_logged_model(pending.model_id)
            raise
        before()
        self._client.finalize_logged_model(pending.model_id, "READY")
        with self._choosing:
            self._saved.append(pending)
        shutil.rmtree(Path(folder).parent, ignore_errors=True)
        self._client.log_outputs(self._run_id, [LoggedModelOutput(pending.model_id, step=pending.iteration)])
        if self.is_local:
            self._link(pending.index).unlink(missing_ok=True)
            self._link(pending.index).symlink_to(pending.location)
        self.prune()

    def adopt(self, store: CheckpointStore, iteration: int, seconds: float) -> None:
        """Take a copy of another run's newest checkpoint as the newest one of this run, where this run is."""
        newest = self.newest()
        index = newest.index + 1 if newest is not None else 0
        folder = Path(self.prepare_staging()) / uuid.uuid4().hex / f"checkpoint_{index:06d}"
        with store.lends_newest() as checkpoint:
            storage.download(checkpoint.location, folder)
        staged = StagedCheckpoint(index, str(folder), checkpoint.score)
        pending = self.create(staged, iteration, checkpoint.metrics, seconds)
        self._commit(pending, staged.path, lambda: None, lambda path, location: storage.upload(Path(path), location))

    @contextmanager
    def lends_newest(self) -> Iterator[SavedCheckpoint]:
        """Keep the newest checkpoint while somebody copies it, also when newer ones come."""
        with self._choosing:
            checkpoint = max(self._saved, key=lambda saved: saved.index)
            self._lent.append(checkpoint)
        try:
            yield checkpoint
        finally:
            self._lent.remove(checkpoint)

    def prune(self) -> None:
        """Delete what retention does not keep, except what an attempt may still be reading."""
        with self._choosing:
            kept = [self.in_use, *self._lent]
            gone = [old for old in expendable(self._saved, self._config) if old not in kept]
            self._saved = [saved for saved in self._saved if saved not in gone]
        for old in gone:
            self._delete(old)

    def _delete(self, saved: SavedCheckpoint) -> None:
        self._client.delete_logged_model(saved.model_id)
        self._link(saved.index).unlink(missing_ok=True)
        # On a disk, the folder of the logged model around it goes too.
        storage.delete(saved.location.rsplit("/", 2)[0] if self.is_local else saved.location)

    def _link(self, index: int) -> Path:
        """Where a person who looks into the training's own folder finds a checkpoint."""
        return self._log_dir / f"checkpoint_{index:06d}"

    def wait(self, timeout: float) -> int:
        """Wait for commits under way; gives how many still are after ``timeout`` seconds."""
        return len(concurrent.futures.wait(self._commits, timeout).not_done)

    def settle(self) -> list[BaseException]:
        """Wait for all commits under way; gives the errors of those that failed, once."""
        commits, self._commits = self._commits, []
        return [error for commit in commits if (error := commit.exception()) is not None]

    def clear_staging(self) -> None:
        """Remove snapshots that were never committed."""
        shutil.rmtree(self.staging, ignore_errors=True)
        parent = Path(self.staging).parent
        if parent.name == ".staging":
            with contextlib.suppress(OSError):  # others still use it, or have removed it
                parent.rmdir()

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self.clear_staging()


def models_of_run(client: MlflowClient, experiment_id: str, run_id: str) -> list[Any]:
    """All logged models of a run."""
    models: list[Any] = []
    token = None
    while True:
        page = client.search_logged_models(
            [experiment_id], filter_string=f"source_run_id = '{run_id}'", max_results=100, page_token=token
        )
        models += page
        token = page.token
        if not token:
            return models


def as_saved(model: Any) -> SavedCheckpoint | None:
    """A logged model as a checkpoint; None if it is not one, or not complete."""
    tags = model.tags
    if "trainlib.checkpoint" not in tags or str(model.status) != "READY":
        return None
    index = int(tags["trainlib.checkpoint"])
    score = tags.get("trainlib.score")
    return SavedCheckpoint(
        index=index,
        iteration=int(tags["trainlib.iteration"]),
        model_id=model.model_id,
        location=_location(model, index),
        score=float(score) if score is not None else None,
        metrics=json.loads(tags.get("trainlib.metrics", "{}")),
        seconds=float(tags.get("trainlib.seconds", "0")),
    )


def _location(model: Any, index: int) -> str:
    return storage.absolute(storage.join(model.artifact_location, f"checkpoint_{index:06d}"))


def as_checkpoint(saved: SavedCheckpoint) -> Checkpoint:
    """A checkpoint that a user can read."""
    return Checkpoint(saved.location)
