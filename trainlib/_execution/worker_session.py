"""The session inside a worker: numbers its reports, snapshots its checkpoints, keeps it in step with the others."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._execution.events import EpochRead, Failed, Note, Report, StagedCheckpoint
from trainlib._execution.metrics import as_numbers
from trainlib._execution.outbox import Outbox
from trainlib._execution.waiting_room import WaitingRoom
from trainlib.checkpoint import DICT_FILE, PREPROCESSOR_FILE, PREPROCESSOR_KEY, Checkpoint, dump
from trainlib.config import CheckpointConfig
from trainlib.errors import CheckpointNotSavedError, DataError, OutOfStepError, ScoreNotReportedError
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard

# A rank this many reports ahead of the slowest one waits for it; one that is silent for so long has
# stopped reporting while the others go on.
MAX_LEAD = 1000
SILENCE_S = 60.0


class StopTraining(BaseException):
    """Unwinds a training function that has been stopped early. Not an Exception: nobody should catch it."""


@dataclass(frozen=True)
class Assignment:
    """All that a worker has to know for one attempt."""

    context: TrainContext
    iterations_done: int
    next_checkpoint: int
    resume_from: Checkpoint | None
    checkpoint_config: CheckpointConfig
    staging: str
    """Local folder for checkpoints that are not yet committed."""
    shares_disk: bool
    """Whether that folder is where checkpoints are kept, and so has to be seen from every node."""
    in_step: bool
    """Whether each report waits until all ranks have made it and the training is known to go on. A training that may
    be stopped at a report then ends there, on all ranks, and no rank is left alone in a collective."""
    environment: dict[str, str]
    import_path: list[str]
    """Where the coordinator imports from: the training function's modules are found there too."""
    preprocessor: Any = None
    """Fitted; goes with every checkpoint."""
    shards: dict[str, DatasetShard] = field(default_factory=dict)
    """This rank's, by the names of their datasets."""


class WorkerSession:
    """Stands behind :mod:`trainlib.session` while a training function runs."""

    def __init__(self, assignment: Assignment, outbox: Outbox) -> None:
        self.context = assignment.context
        self.reports = 0
        self.checkpoint_was_asked_for = False
        self.in_step = assignment.in_step
        self._max_lead = 0 if assignment.in_step else MAX_LEAD
        self._assignment = assignment
        self._outbox = outbox
        self._iteration = assignment.iterations_done
        self._next_checkpoint = assignment.next_checkpoint
        self._checkpoint = assignment.resume_from
        self._last = time.monotonic()
        self._slowest = 0
        self._moved = threading.Condition()
        self._stopping = False
        self._waiting_room = WaitingRoom(assignment.checkpoint_config)
        self._has_said_it_waits = False

    # -- called by the training function --------------------------------------------------------------

    def report(self, metrics: dict[str, Any], checkpoint: Checkpoint | None) -> None:
        if self._stopping:
            raise StopTraining
        leads = self.context.world_rank == 0
        numbers = as_numbers(metrics)
        staged = self._stage(checkpoint, numbers) if checkpoint is not None and leads else None
        self._remember(checkpoint)
        self._iteration += 1
        self.reports += 1
        self._put(numbers if leads else None, staged)
        self._wait_for_the_slowest()
        if self.in_step and self._stopping:
            raise StopTraining

    def save(self, checkpoint: Checkpoint) -> None:
        if self._stopping:
            raise StopTraining
        self._remember(checkpoint)
        if self.context.world_rank == 0 and (staged := self._stage(checkpoint, {})) is not None:
            self._put(None, staged)

    def latest_checkpoint(self) -> Checkpoint | None:
        return self._checkpoint

    def dataset_shard(self, name: str) -> DatasetShard:
        shards = self._assignment.shards
        if name not in shards:
            there = f"It has {_names(shards)}" if shards else "It has none"
            raise DataError(
                f"the trainer has no dataset {name!r}. {there}: pass it to the trainer, datasets={{{name!r}: ...}}"
            )
        return shards[name].on_epoch_end(
            lambda dataset, rows: self._outbox.put(EpochRead(dataset, rows, self._iteration + 1))
        )

    def give_up(self, error: Exception) -> None:
        self._outbox.put(Failed.of(error))

    # -- called by the coordinator ----------------------------------------------------------------------

    def slowest_is_at(self, reports: int) -> None:
        """The rank that is furthest behind has reported this often."""
        if reports != self._slowest:
            with self._moved:
                self._slowest = reports
                self._moved.notify_all()

    def settle_checkpoints(self, newest: int) -> None:
        """The checkpoints up to this number are saved, or could not be."""
        with self._moved:
            self._waiting_room.leave(newest)
            self._moved.notify_all()

    def others_left(self, ranks: list[int]) -> None:
        """These ranks have returned. An epoch starts on all ranks at once, so there is none any more."""
        left = OutOfStepError(
            f"rank(s) {', '.join(map(str, ranks))} returned, but this one goes on reading the dataset. Every rank must read "
            "it equally often."
        )
        for shard in self._assignment.shards.values():
            if shard.refuse_epochs(left):
                self.give_up(left)

    def stop(self) -> None:
        """End the training function at its next report."""
        with self._moved:
            self._stopping = True
            self._moved.notify_all()

    # -- inside -----------------------------------------------------------------------------------------

    def _put(self, metrics: dict[str, int | float] | None, staged: StagedCheckpoint | None) -> None:
        now = time.monotonic()
        self._outbox.put(Report(self._iteration, metrics, staged, time.time(), now - self._last))
        self._last = now

    def _remember(self, checkpoint: Checkpoint | None) -> None:
        """Make it the latest checkpoint, unless it is a directory, which the caller may delete at once."""
        if checkpoint is not None and checkpoint.get_internal_representation()[0] == "dict":
            self._checkpoint = checkpoint

    def _stage(self, checkpoint: Checkpoint, metrics: dict[str, int | float]) -> StagedCheckpoint | None:
        """Snapshot a checkpoint: the caller may change or delete what it is made of right afterwards."""
        if self._assignment.checkpoint_config.num_to_keep == 0:
            return None
        index = self._next_checkpoint
        kind, held = checkpoint.get_internal_representation()
        score = self._score(held if kind == "dict" else {}, metrics)
        self._wait_for_room()
        # The random part keeps two processes apart that write the same checkpoint, one of them not yet
        # known to be lost.
        folder = Path(self._assignment.staging) / uuid.uuid4().hex / f"checkpoint_{index:06d}"
        try:
            self._write_snapshot(checkpoint, folder, index)
        except OSError as error:
            if not storage.lacks_room(error):
                raise
            raise CheckpointNotSavedError(
                f"checkpoint_{index:06d} could not be written to {folder.parent.parent} on {socket.gethostname()}: "
                f"{error.strerror or error}. Free space there, or set RunConfig.storage_path to a larger disk"
            ) from error
        self._next_checkpoint += 1
        with self._moved:
            self._waiting_room.enter(index, _size_of(folder))
        return StagedCheckpoint(index, os.fspath(folder), score)

    def _write_snapshot(self, checkpoint: Checkpoint, folder: Path, index: int) -> None:
        kind, held = checkpoint.get_internal_representation()
        preprocessor = self._assignment.preprocessor
        if kind == "dict":
            folder.mkdir(parents=True)
            extra = {"_timestamp": int(time.time()), PREPROCESSOR_KEY: preprocessor, "_current_checkpoint_id": index}
            with open(folder / DICT_FILE, "wb") as file:
                dump({**held, **extra}, file)
            return
        checkpoint.to_directory(folder)
        if preprocessor is not None:
            with open(folder / PREPROCESSOR_FILE, "wb") as file:
                dump(preprocessor, file)
        if not any(folder.iterdir()):  # most stores have no empty folders
            raise ValueError(f"{checkpoint.path} is empty: write the checkpoint's files before report()")

    def _wait_for_room(self) -> None:
        """Wait until the store has caught up, if too many checkpoints wait for it. Otherwise they would fill the disk."""
        with self._moved:
            if not self._waiting_room.is_full:
                return
            if not self._has_said_it_waits:
                self._has_said_it_waits = True
                self._outbox.put(Note(f"report() waits: {self._waiting_room}"))
            self._moved.wait_for(lambda: not self._waiting_room.is_full or self._stopping)
            if self._stopping:
                raise StopTraining

    def _score(self, data: dict[str, Any], metrics: dict[str, int | float]) -> float | None:
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


def _names(data: dict[str, Any]) -> str:
    return ", ".join(repr(key) for key in data) or "nothing"
