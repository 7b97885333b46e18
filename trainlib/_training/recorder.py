"""What a training records: its reports, its checkpoints, the data it read, and how its attempts went."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib import _storage as storage
from trainlib._data.rows import RowCounts
from trainlib._execution.events import EpochRead, Report, Seeded, StagedCheckpoint
from trainlib._execution.held import hold
from trainlib._execution.reported import numbers_of
from trainlib._flat import flattened
from trainlib._registry.attempts import AttemptRecord, Outcome, stopped_by
from trainlib._registry.checkpoints import CheckpointStore, LostCheckpoint, as_checkpoint
from trainlib._registry.inputs import log_inputs
from trainlib._registry.metrics import rows_read
from trainlib._registry.patience import short
from trainlib._registry.reported_values import ReportedValues
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.run import RegisteredRun
from trainlib._registry.seeds import seed_tags
from trainlib._registry.tags import SPENT
from trainlib._training.history import History
from trainlib._training.history_rows import FILE, RowSpool
from trainlib.errors import CheckpointNotSavedError, ConnectionFailedError, TrainingFailedError
from trainlib.result import Result, Stopped

if TYPE_CHECKING:
    from trainlib._data.config import DataConfig
    from trainlib._data.ingest import Ingest

__all__ = ["Recorder"]

_SAVING_NOTICE_S = 5.0
_HURRY_S = 5.0
# A training that is suspended waits so long for checkpoints that are being stored.
_SUSPEND_S = 600.0
# In most gangs, all ranks have the same seed, or it grows with the rank. So a tag has those of the first ones.
_MOST_SEEDS = 100


class Recorder:
    """Keeps what happens in a training, in memory and in its run in the registry.

    It decides nothing, and shows nothing: :meth:`remarks` has what a person should know.
    """

    def __init__(
        self,
        run: RegisteredRun,
        *,
        config: dict[str, Any],
        num_workers: int,
        dataset_config: DataConfig,
    ) -> None:
        self._run = run
        self._dataset_config = dataset_config
        self._remarks: list[str] = []
        newest = run.checkpoints.newest()
        self.history = History(
            trial_id=run.trial_id,
            experiment_id=run.run_id,  # Ray's is one training's own, and so not that of an experiment in MLflow
            experiment_tag=str(run.trial_number),
            config=config,
            newest_iteration=run.iterations_before,
            rows=RowSpool(run.log_dir / FILE, earlier=_rows_before(run)),
            seconds=newest.seconds if newest is not None else 0.0,
        )
        self._rows = RowCounts(num_workers)
        self._values = ReportedValues()
        self._data_is_logged = False
        self._seeds: dict[int, int] = {}
        self._resumed_at: list[int] = []
        self._announced = newest.index if newest is not None else -1
        """The newest checkpoint that :meth:`newly_saved` has given."""

    # -- an attempt -----------------------------------------------------------------------------------

    def attempt_starts(self) -> SavedCheckpoint | None:
        """Another attempt begins. Gives the checkpoint that it starts from, which is kept while the attempt lasts."""
        self._run.patience.renew()
        newest = self._run.checkpoints.attempt_starts()
        resumed_at = newest.iteration if newest is not None else 0
        # One that was in the memory of a Ray that has ended is gone, and its number is given again.
        self._announced = min(self._announced, newest.index if newest is not None else -1)
        self.history.attempt_starts(resumed_at)
        if self._run.attempts:  # it is not the first one
            self._resumed_at.append(resumed_at)
        self._rows.attempt_starts(resumed_at)
        return newest

    def data_opened(self, ingest: Ingest, kept_preprocessor: Any) -> None:
        """List the datasets as inputs of the run, once, and keep the preprocessor, unless it is the one that was kept."""
        if self._data_is_logged:
            return
        facts = [each.facts for each in ingest.opened.values()]
        self._run.patience(log_inputs, self._run.client, self._run.run_id, facts)
        if ingest.preprocessor is not None and ingest.preprocessor is not kept_preprocessor:
            self._run.save_preprocessor(cloudpickle.dumps(ingest.preprocessor))
        self._data_is_logged = True

    def epoch_read(self, read: EpochRead) -> None:
        """Count the rows of an epoch, once all ranks have read it."""
        rows = self._rows.add(read.rank, read.dataset, read.rows, read.iteration)
        if rows is not None:
            metrics = rows_read(read.dataset, rows, is_split=self._dataset_config.splits(read.dataset))
            self._remarks += self._run.metrics.write(read.iteration, metrics, time.time())

    def seeded(self, event: Seeded) -> None:
        """Keep the seed of a rank. That of the latest attempt counts."""
        if event.rank < _MOST_SEEDS:
            self._seeds[event.rank] = event.seed
            self._run.metrics.note(tags=seed_tags(self._seeds))

    def report(self, report: Report, fetch: Callable[[str, str], None]) -> dict[str, Any]:
        """Record a report. Gives its metrics with everything that is filled in automatically.

        Args:
            report: What rank 0 reported.
            fetch: Brings a folder on rank 0's disk to a location, where this process cannot see that disk.
        """
        metrics = report.metrics or {}
        numbers = numbers_of(metrics)
        result = self.history.add(report, numbers) if report.metrics is not None else {}
        if numbers is not metrics:
            self._keep_values(metrics, numbers)
        staged = report.checkpoint
        if staged is not None and staged.packed is not None:
            self._hold(report, staged, staged.packed, staged.reported or numbers)
        if staged is not None and staged.packed is None:
            self._save(report, staged, staged.reported or numbers, fetch)
        elif numbers:
            self._remarks += self._run.metrics.write(report.iteration, numbers, report.timestamp)
        return result

    def _keep_values(self, metrics: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
        """Keep what is no number as tags of the run."""
        self._values.add({name: value for name, value in flattened(metrics).items() if name not in numbers})
        if self._values.is_due:
            self._note_values()

    def _hold(self, report: Report, staged: StagedCheckpoint, packed: bytes, metrics: Mapping[str, float]) -> None:
        """Keep a checkpoint in memory, because none is to be written."""
        self._run.checkpoints.hold(
            SavedCheckpoint(
                index=staged.index,
                iteration=report.iteration,
                model_id="",
                location="",
                score=staged.score,
                metrics=dict(metrics),
                seconds=self.history.seconds,
                kind=staged.kind,
                held=hold(packed),
            )
        )

    def _save(
        self,
        report: Report,
        staged: StagedCheckpoint,
        metrics: Mapping[str, float],
        fetch: Callable[[str, str], None],
    ) -> None:
        checkpoints = self._run.checkpoints
        if checkpoints.has_heard_of(staged.index):  # see rescue()
            return
        pending = checkpoints.create_in_background(
            index=staged.index,
            iteration=report.iteration,
            metrics=dict(metrics),
            score=staged.score,
            kind=staged.kind,
            seconds=self.history.seconds,
        )
        self._remarks += self._run.metrics.write(
            report.iteration, metrics, report.timestamp, checkpoint=pending, again=staged.reported is not None
        )

        def upload(folder: str, location: str) -> None:
            if checkpoints.files.is_local:
                storage.upload(Path(folder), location)
            else:
                fetch(folder, location)

        checkpoints.commit_in_background(
            staged.index, pending, staged.path, upload=upload, flush_metrics=self._run.metrics.flush
        )

    def rescue(self, reports: Iterable[Report], fetch: Callable[[str, str], None], *, quickly: bool) -> None:
        """Somebody ends or suspends the training: give the checkpoints that were reported some time to be saved.

        Args:
            reports: Those that may not have been recorded, or only in part. One that has been does no harm.
            fetch: As for :meth:`report`.
            quickly: Whether somebody waits for the end: then it is a few seconds, and otherwise minutes.
        """
        if quickly:
            self._run.patience.hurry(_HURRY_S)
        for report in reports:
            self.report(report, fetch)
        self._run.checkpoints.wait(_HURRY_S if quickly else _SUSPEND_S)

    def newly_saved(self) -> list[SavedCheckpoint]:
        """The checkpoints that have become complete since the last call, oldest first. With ``num_to_keep=0``, the newest."""
        saved = self._run.checkpoints.kept.newer_than(self._announced)
        if saved:
            self._announced = saved[-1].index
        return saved

    def wait_for_checkpoints(self) -> Iterator[str]:
        """Wait until all checkpoints that were reported are saved, or have failed to be. Yields how far that is."""
        while waiting := self._run.checkpoints.wait(timeout=_SAVING_NOTICE_S):
            yield from self.remarks()
            if not self._run.patience.is_waiting:
                yield f"saving {waiting} checkpoint(s) to {self._run.artifact_root}"

    @property
    def settled_checkpoint(self) -> int:
        """The number of the newest checkpoint that is saved, or could not be: those up to it are waited for no more."""
        return self._run.checkpoints.settled

    def require_registry(self) -> None:
        """Raise the error of a checkpoint that could not be recorded because MLflow was away for too long."""
        for lost in self._run.checkpoints.lost():
            if isinstance(lost.error, ConnectionFailedError):
                raise lost.error

    def require_saved(self) -> None:
        """Raise an error if the newest checkpoint could not be saved: such a training has not succeeded.

        An older one that could not be saved is a remark.

        Raises:
            CheckpointNotSavedError: the store did not accept it.
            ConnectionFailedError: MLflow did not accept it, or was away for too long.
        """
        lost = self._run.checkpoints.settle()
        newest = self._run.checkpoints.newest()
        for each in lost:
            if newest is None or newest.index < each.index:
                if isinstance(each.error, ConnectionFailedError):
                    raise each.error
                raise CheckpointNotSavedError(self._describe(each)) from each.error
            self._remarks.append(f"{self._describe(each)}. A newer one was saved")

    def _describe(self, lost: LostCheckpoint) -> str:
        name = f"checkpoint_{lost.index:06d}"
        if isinstance(lost.error, ConnectionFailedError):
            return f"{name} could not be saved: {lost.error}"
        kind = type(lost.error).__name__
        return f"{name} could not be saved in {self._run.artifact_root}: {kind}: {short(lost.error)}"

    # -- how attempts went ----------------------------------------------------------------------------

    def spent(self, seconds: float, *, soon: bool) -> None:
        """Keep in how many seconds workers ran. ``soon`` is for a function that reports nothing for long."""
        self._run.metrics.note(tags={SPENT: f"{seconds:.1f}"}, soon=soon)

    def attempt_succeeded(
        self, number: int, outcome: Outcome, resumed_from: str | None, stopped: Stopped | None
    ) -> None:
        """The attempt is over, and its ranks read no checkpoint any more."""
        self._run.checkpoints.attempt_ended()
        self._note_values()
        message = str(stopped) if stopped is not None else ""
        self._run.record_success(AttemptRecord(number, outcome, resumed_from, message=message))

    def attempt_interrupted(self, number: int, outcome: Outcome, resumed_from: str | None) -> None:
        """Somebody ended or suspended the attempt."""
        self._note_values()
        self._run.record(AttemptRecord(number, outcome, resumed_from, lost_iterations=self._lost_iterations()))

    def attempt_failed(self, failure: TrainingFailedError, resumed_from: str | None) -> int:
        """The attempt failed. Gives how many iterations are lost with it."""
        self._note_values()
        lost, outcome = self._lost_iterations(), Outcome(failure.cause)
        self._run.record(
            AttemptRecord(failure.attempt, outcome, resumed_from, failure.rank, failure.node, lost, str(failure))
        )
        return lost

    def _note_values(self) -> None:
        """Have the latest values that are no numbers written with what is written next."""
        tags, remarks = self._values.changed()
        self._remarks += remarks
        self._run.metrics.note(tags=tags)

    def _lost_iterations(self) -> int:
        """How many iterations came after the newest checkpoint, and have to be repeated."""
        newest = self._run.checkpoints.newest()
        return max(0, self.history.newest_iteration - (newest.iteration if newest is not None else 0))

    def drop_unsaved(self, *, quickly: bool) -> None:
        """Wait for checkpoints under way after a failure, and clear away those that could not be saved.

        With ``quickly``, MLflow is waited for no longer than a few seconds: somebody has ended the training.
        """
        if quickly:
            self._run.patience.hurry(_HURRY_S)

        def give_up() -> bool:
            self._remarks += self._run.remarks()  # which is when an MLflow that hangs is noticed
            return quickly and self._run.patience.is_over

        self._remarks += [self._describe(lost) for lost in self._run.checkpoints.settle(give_up=give_up)]
        self._run.checkpoints.files.clear_staging()
        if not self._run.patience.is_waiting:
            with contextlib.suppress(Exception):  # the next attempt, or the end of the training, tries again
                self._run.checkpoints.remove_strays()

    # -- another training's checkpoint ----------------------------------------------------------------

    def copy_from(self, store: CheckpointStore, config: dict[str, Any], numbers: dict[str, float]) -> None:
        """Make a copy of another run's newest checkpoint the newest one here, without counting iterations back.

        Args:
            store: The checkpoints of the other run.
            config: What the training function gets from now on.
            numbers: What changed in it, as metrics: params of a run cannot change.
        """
        self.history.config_is(config)
        iteration = self.history.newest_iteration
        self._run.checkpoints.copy_newest_of(store, iteration=iteration, seconds=self.history.seconds)
        self._remarks += self._run.metrics.write(iteration, numbers, time.time())

    # -- what there is --------------------------------------------------------------------------------

    def remarks(self) -> list[str]:
        """What a person should know of what was recorded since the last call."""
        remarks, self._remarks = self._remarks, []
        return [*self._run.remarks(), *remarks]

    def result(self, returned: list[Any] | None) -> Result:
        """What the training has given; ``returned`` is what its function returned by rank, once it has."""
        checkpoints = self._run.checkpoints
        newest = checkpoints.newest()
        return Result(
            metrics=self.history.finished() if returned is not None else self.history.so_far(),
            checkpoint=as_checkpoint(newest) if newest is not None else None,
            log_dir=self._run.log_dir,
            best_checkpoints=[(as_checkpoint(saved), dict(saved.metrics)) for saved in checkpoints.kept.best()],
            run_id=self._run.run_id,
            run_url=self._run.url,
            attempts=len(self._run.attempts),
            resumed_at=list(self._resumed_at),
            stopped=stopped_by(self._run.attempts) if returned is not None else None,
            returned=returned or [],
            rows=self._rows.by_dataset(),
            history=self.history.rows(),
        )


def _rows_before(run: RegisteredRun) -> Iterator[dict[str, Any]]:
    """What earlier processes reported, as the registry has it."""
    for iteration, metrics in run.hand_over_history().rows():
        yield {**metrics, "training_iteration": iteration}
