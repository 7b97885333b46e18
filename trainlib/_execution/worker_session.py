"""The session inside a worker: numbers its reports, snapshots its checkpoints, keeps it in step with the others."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from trainlib import _storage as storage
from trainlib._execution.divergence import DivergenceWatch
from trainlib._execution.events import EpochRead, Failed, FileSent, Note, Report, Seeded, StagedCheckpoint
from trainlib._execution.latest_checkpoints import LatestCheckpoint, LatestCheckpoints, Place
from trainlib._execution.metrics import as_numbers
from trainlib._execution.outbox import Outbox
from trainlib._execution.reported import numbers_of, snapshot
from trainlib._execution.snapshots import linked_copy, pack_snapshot, write_snapshot
from trainlib._execution.waiting_room import WaitingRoom
from trainlib._execution.working_directory import WorkingDirectory
from trainlib._rooms import checkpoint_class
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import CheckpointNotSavedError, OutOfStepError, ScoreNotReportedError
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard

# A rank this many reports ahead of the slowest one waits for it; one that is silent for so long has
# stopped reporting while the others go on.
MAX_LEAD = 1000
SILENCE_S = 60.0
# For how long rank 0 waits to have come as far as a rank that asks for its newest checkpoint, before that asks again.
LATEST_S = 0.5


class StopTraining(BaseException):
    """Unwinds a training function that has been stopped early. Not an Exception: nobody should catch it."""

    def __init__(self) -> None:
        super().__init__()
        self.at = time.monotonic()
        """When. What is unwound may take a while, and others may fail because of it meanwhile."""


@dataclass(frozen=True)
class Assignment:
    """All that a worker has to know for one attempt."""

    context: TrainContext
    iterations_done: int
    next_checkpoint: int
    resume_from: Checkpoint | None
    checkpoint_config: CheckpointConfig
    staging: str | None
    """Local folder for checkpoints that are not yet committed. It is this training's own, and is deleted. None: none is written."""
    shares_disk: bool
    """Whether that folder is where checkpoints are kept, and so has to be seen from every node."""
    in_step: bool
    """Whether each report waits until all ranks have made it and the training is known to go on. A training that may
    be stopped at a report then ends there, on all ranks, and no rank is left alone in a collective."""
    environment: dict[str, str]
    import_path: list[str]
    """Where the coordinator imports from: the training function's modules are found there too."""
    directory: WorkingDirectory = field(default_factory=WorkingDirectory)
    """Where the training function runs."""
    preprocessor: Any = None
    """Fitted; goes with every checkpoint."""
    watch: DivergenceWatch = field(default_factory=DivergenceWatch)
    """Says which checkpoints are not worth keeping."""
    all_ranks: bool = False
    """Whether the metrics of all ranks are wanted, and not only those of rank 0."""
    shards: dict[str, DatasetShard] = field(default_factory=dict)
    """This rank's, by the names of their datasets."""
    rank_zero: Any = None
    """The worker that saves checkpoints, for the other ranks."""


class WorkerSession:
    """Stands behind :mod:`trainlib.session` while a training function runs."""

    def __init__(self, assignment: Assignment, outbox: Outbox) -> None:
        self.context = assignment.context
        self.directory = assignment.directory
        self.checkpoint_config = assignment.checkpoint_config
        self.dataset_names = tuple(assignment.shards)
        self.reports = 0
        self.checkpoint_was_asked_for = False
        self.in_step = assignment.in_step
        self._max_lead = 0 if assignment.in_step else MAX_LEAD
        self._assignment = assignment
        self.has_seed = False
        """Whether the function has recorded the seed of its random numbers."""
        self._outbox = outbox
        self._iteration = assignment.iterations_done
        self._next_checkpoint = assignment.next_checkpoint
        self.resume_from = assignment.resume_from
        self._latest = LatestCheckpoints(alone=assignment.context.world_size == 1)
        """The checkpoints that this attempt has saved last. On rank 0 alone: the others ask it."""
        self._saves = 0
        """How many calls of :meth:`save` there were since the last report."""
        self._has_ended = False
        self._last = time.monotonic()
        self._slowest = 0
        self._moved = threading.Condition()
        self._stopping = False
        self._waiting_room = WaitingRoom(assignment.checkpoint_config)
        self._has_said_it_waits = False
        self._asked_for: set[str] = set()

    # -- called by the training function --------------------------------------------------------------

    def report(
        self,
        metrics: dict[str, Any],
        checkpoint: Checkpoint | None,
        when_stopped: Callable[[], Checkpoint] | None = None,
    ) -> None:
        leads = self.context.world_rank == 0
        is_last = self._stopping
        if is_last and (when_stopped is None or not leads):
            raise StopTraining
        if is_last and checkpoint is None and when_stopped is not None:
            checkpoint = when_stopped()
        reported = snapshot(metrics)
        numbers = numbers_of(reported)
        self._assignment.watch.inspect(self._iteration + 1, numbers)
        place = (self.reports + 1, 0)
        saves = when_stopped is not None
        staged = (
            self._stage(checkpoint, numbers, place, when_stopped=saves) if checkpoint is not None and leads else None
        )
        self._iteration += 1
        with self._moved:
            self.reports, self._saves = place
            self._moved.notify_all()
        made = self._put(reported if leads or self._assignment.all_ranks else None, staged, saves)
        if is_last:
            raise StopTraining
        self._wait_for_the_slowest()
        if self._stops_here:
            if when_stopped is not None and leads and staged is None:
                self._save_for(made, when_stopped(), numbers)
            raise StopTraining

    def save(self, checkpoint: Checkpoint) -> None:
        if self._stopping:
            raise StopTraining
        place = (self.reports, self._saves + 1)
        staged = self._stage(checkpoint, {}, place) if self.context.world_rank == 0 else None
        with self._moved:
            self.reports, self._saves = place
            self._moved.notify_all()
        if staged is not None:
            self._put(None, staged)

    def latest_checkpoint(self) -> Checkpoint | None:
        """On every rank what rank 0 has at the same place. Whoever is ahead of rank 0 waits until it has reported as often."""
        place = (self.reports, self._saves)
        if self._assignment.rank_zero is None or place == (0, 0):
            return self._latest.newest or self.resume_from
        while not self._stopping:
            try:
                found: LatestCheckpoint = ray.get(self._assignment.rank_zero.latest_checkpoint.remote(place, LATEST_S))
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            if found.is_reached:
                return found.checkpoint or self.resume_from
        raise StopTraining

    def dataset_shard(self, name: str) -> DatasetShard | None:
        shards = self._assignment.shards
        if name not in shards:
            if self.context.world_rank == 0 and name not in self._asked_for:
                self._asked_for.add(name)
                self._outbox.put(
                    Note(f"get_dataset_shard({name!r}) returns None. The trainer has {_names(shards)} in its datasets")
                )
            return None
        return shards[name].on_epoch_end(
            lambda dataset, rows: self._outbox.put(EpochRead(dataset, rows, self._iteration + 1))
        )

    def seeded(self, seed: int) -> None:
        self.has_seed = True
        self._outbox.put(Seeded(seed))

    def send_file(self, name: str, content: bytes) -> None:
        self._outbox.put(FileSent(name, zlib.compress(content, level=1)))

    def give_up(self, error: Exception) -> None:
        self._outbox.put(Failed.of(error))

    # -- called by the coordinator ----------------------------------------------------------------------

    def slowest_is_at(self, reports: int) -> None:
        """The rank that is furthest behind has reported this often."""
        if reports != self._slowest:
            with self._moved:
                self._slowest = reports
                self._latest.slowest_is_at(reports)
                self._moved.notify_all()

    def hand_out_latest(self, place: Place, timeout: float) -> LatestCheckpoint:
        """For another rank: the checkpoint that was the newest at its place, once this rank has come as far.

        Args:
            place: Where that rank is.
            timeout: For how many seconds to wait for this rank.
        """
        with self._moved:
            is_reached = self._moved.wait_for(
                lambda: self._has_ended or (self.reports, self._saves) >= place, timeout=timeout
            )
            return LatestCheckpoint(is_reached, self._latest.at(place) if is_reached else None)

    def has_ended(self) -> None:
        """The training function has returned or raised, and saves no more checkpoints."""
        with self._moved:
            self._has_ended = True
            self._moved.notify_all()

    def settle_checkpoints(self, newest: int) -> None:
        """The checkpoints up to this number are saved, or could not be."""
        with self._moved:
            self._waiting_room.leave(newest)
            self._moved.notify_all()

    def clear_staging(self) -> None:
        """The attempt is over: remove all snapshots, also that of the newest checkpoint."""
        with self._moved:
            self._latest.clear()
        if self._assignment.staging is not None:
            shutil.rmtree(self._assignment.staging, ignore_errors=True)

    def others_left(self, ranks: list[int]) -> None:
        """These ranks have returned. An epoch starts on all ranks at once, so there is none any more."""
        left = OutOfStepError(
            f"rank(s) {', '.join(map(str, ranks))} returned, but this one goes on reading the dataset. Every rank must read "
            "it equally often."
        )
        for shard in self._assignment.shards.values():
            if shard.refuse_epochs(left):
                self.give_up(left)

    def stop(self, slowest: int) -> None:
        """End the training function at its next report.

        Args:
            slowest: How many reports the ranks were let go on from. All of them get this number, so that those in step end at
                the same report, whichever of their calls comes first.
        """
        with self._moved:
            self._slowest = max(self._slowest, slowest)
            self._stopping = True
            self._moved.notify_all()

    # -- inside -----------------------------------------------------------------------------------------

    @property
    def _stops_here(self) -> bool:
        """Whether all ranks end at the report that this one has just made: none of them was let go on from it."""
        return self.in_step and self._stopping and self.reports > self._slowest

    def _put(
        self, metrics: dict[str, Any] | None, staged: StagedCheckpoint | None, saves_when_stopped: bool = False
    ) -> Report:
        now = time.monotonic()
        made = Report(self._iteration, metrics, staged, time.time(), now - self._last, saves_when_stopped)
        self._outbox.put(made)
        self._last = now
        return made

    def _save_for(self, made: Report, checkpoint: Checkpoint, metrics: Mapping[str, float]) -> None:
        """Save a checkpoint of a report that was made without one."""
        place = (self.reports, self._saves + 1)
        staged = self._stage(checkpoint, metrics, place, when_stopped=True)
        if staged is not None:
            self._outbox.put(
                replace(made, metrics=None, checkpoint=replace(staged, reported=dict(metrics)), seconds=0.0)
            )

    def _stage(
        self, checkpoint: Checkpoint, metrics: Mapping[str, float], place: Place, *, when_stopped: bool = False
    ) -> StagedCheckpoint | None:
        """Snapshot a checkpoint: the caller may change or delete what it is made of right afterwards.

        Args:
            checkpoint: What to snapshot.
            metrics: What is reported with it.
            place: Where this rank is once that is done.
            when_stopped: Whether it is also kept if the function has been told to stop. Then it does not wait until the store has
                caught up.
        """
        if not self._assignment.watch.is_well:
            return None
        index = self._next_checkpoint
        kind, held = checkpoint.get_internal_representation()
        score = self._score(held if kind == "dict" else {}, metrics)
        self._wait_for_room()
        if self._stopping and not when_stopped:
            raise StopTraining
        if self._assignment.checkpoint_config.num_to_keep == 0:
            packed = pack_snapshot(checkpoint, index, self._assignment.preprocessor)
            self._snapshotted(
                index, len(packed), place, checkpoint_class(checkpoint.kind).from_bytes(packed, trust=True)
            )
            return StagedCheckpoint(index, "", score, checkpoint.kind, packed)
        assert self._assignment.staging is not None, "without a folder, none is to be written"
        # The random part keeps two processes apart that write the same checkpoint, one of them not yet
        # known to be lost.
        folder = Path(self._assignment.staging) / uuid.uuid4().hex / f"checkpoint_{index:06d}"
        try:
            write_snapshot(checkpoint, folder, index, self._assignment.preprocessor)
            latest = checkpoint_class(checkpoint.kind)._in_temporary_folder(linked_copy(folder), trust=True)
        except OSError as error:
            if not storage.lacks_room(error):
                raise
            raise CheckpointNotSavedError(
                f"checkpoint_{index:06d} could not be written to {folder.parent.parent} on {socket.gethostname()}: "
                f"{error.strerror or error}. Free space there, or set RunConfig.storage_path to a larger disk"
            ) from error
        self._snapshotted(index, _size_of(folder), place, latest)
        return StagedCheckpoint(index, os.fspath(folder), score, checkpoint.kind)

    def _snapshotted(self, index: int, size: int, place: Place, latest: Checkpoint) -> None:
        self._next_checkpoint += 1
        with self._moved:
            self._waiting_room.enter(index, size)
            self._latest.add(place, latest)

    def _wait_for_room(self) -> None:
        """Wait until the store has caught up, if too many checkpoints wait for it. Otherwise they would fill the disk."""
        with self._moved:
            if not self._waiting_room.is_full or self._stopping:
                return
            if not self._has_said_it_waits:
                self._has_said_it_waits = True
                self._outbox.put(Note(f"report() waits: {self._waiting_room}"))
            self._moved.wait_for(lambda: not self._waiting_room.is_full or self._stopping)

    def _score(self, data: dict[str, Any], metrics: Mapping[str, float]) -> float | None:
        name = self._assignment.checkpoint_config.checkpoint_score_attribute
        if name is None:
            return None
        for found in (data, metrics):
            if name in found:
                return float(as_numbers({name: found[name]})[name])
        raise ScoreNotReportedError(
            f"checkpoint_score_attribute is {name!r}, but a checkpoint was reported without it. Its dict has {_names(data)}, "
            f"the metrics reported with it are {_names(metrics)}. Report {name!r} with each checkpoint, or name one of "
            "these in CheckpointConfig."
        )

    def _wait_for_the_slowest(self) -> None:
        if self.reports - self._slowest <= self._max_lead:
            return
        with self._moved:
            while self.reports - self._slowest > self._max_lead and not self._stopping:
                before = self._slowest
                # In step, the others may take their time: one that has returned or is lost ends the attempt anyway.
                if not self._moved.wait(None if self.in_step else SILENCE_S) and self._slowest == before:
                    raise OutOfStepError(
                        f"rank {self.context.world_rank} has called report() {self.reports} times, another rank "
                        f"only {before} times and not once in the last {SILENCE_S:g} s. Every rank must call "
                        "report() equally often."
                    )


def _size_of(folder: Path) -> int:
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names)


def _names(data: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in data) or "nothing"
