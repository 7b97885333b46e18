"""One logical training, through all of its attempts: it follows them, asks its judges, and ends the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib._execution.attempt import Attempt
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.events import (
    AttemptEvent,
    DataOpened,
    EpochRead,
    FileSent,
    Note,
    Output,
    RankReports,
    Report,
    Seeded,
    Started,
    Tick,
)
from trainlib._execution.waiting import SuspendedInThreadError
from trainlib._execution.working_directory import remove_empty
from trainlib._registry.attempts import Outcome
from trainlib._registry.checkpoints import CheckpointStore, as_checkpoint
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.run import RegisteredRun
from trainlib._registry.run_file import write_run_file
from trainlib._registry.statuses import status_after
from trainlib._training.display import Display
from trainlib._training.error_file import forget_error, keep_error
from trainlib._training.judges import Judge, Verdict, rule, stop_judges
from trainlib._training.limits import Limits
from trainlib._training.log_files import LogFiles
from trainlib._training.notifying import Notifier
from trainlib._training.planning import plan_attempt, start_of
from trainlib._training.rank_results import RankResults
from trainlib._training.recorder import Recorder
from trainlib._training.retry_policy import Decision, Failure, decide, pause_before_retry
from trainlib._training.sent_files import SentFiles
from trainlib._training.stacks_file import keep_stacks
from trainlib._training.stopping import unending, unreported
from trainlib._training.summary import TrainingSummary
from trainlib.callbacks import Callback, Trial
from trainlib.errors import ConnectionFailedError, RunLostError, TrainingFailedError
from trainlib.result import Result, Stopped

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib.trainer import DataParallelTrainer

__all__ = ["Progress", "Training"]

# How long whoever ends a training waits until rank 0 has said what it has reported.
_LAST_REPORTS_S = 1.0

_NOT_SAVED = (
    "its newest checkpoint is in memory alone, because of CheckpointConfig(num_to_keep=0), and goes with this process: Resume "
    "starts from the beginning"
)
_NOT_RETRIED = (
    "It was not tried again: an earlier attempt raised the same exception in the same line, and no checkpoint was saved in "
    "between. FailureConfig(retry_user_errors='always') tries again all the same, as often as max_failures allows."
)

_EPOCH_PARAMS = ("num_epochs", "epochs", "max_epochs", "n_epochs", "num_iterations", "max_iterations", "max_iters")


@dataclass(frozen=True)
class Progress:
    """How far a training is."""

    iteration: int = 0
    latest: dict[str, Any] | None = None
    """The latest result, with everything that is filled in automatically; None before the first."""
    values: dict[str, Any] | None = None
    """The latest value of each metric, also of those that the latest result does not have."""


class Training:
    """Makes attempts and records them in one run. Whoever retries calls :meth:`attempt` again.

    It does not retry by itself: its error says whether another attempt is to be made, and Prefect makes it.
    """

    def __init__(
        self,
        trainer: DataParallelTrainer,
        run: RegisteredRun,
        *,
        display: Display,
        ingest: Ingest | None = None,
        kept_preprocessor: Any = None,
        judges: Sequence[Judge] = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """A training.

        Args:
            trainer: What to train.
            run: Its run in the registry.
            display: Where people see how it goes.
            ingest: The data, if the trainer was given any.
            kept_preprocessor: What an earlier process fitted and kept with the run.
            judges: Asked after each report, after those for the trainer's own limits and ``RunConfig.stop``.
            callbacks: The user's.
        """
        self.run = run
        self.display = display
        self.outcome = Outcome.FINISHED
        """How the latest attempt ended, or would end now, if it did not fail."""
        self._stopped: Stopped | None = None
        """Which limit has ended it."""
        self._trainer = trainer
        self._ingest = ingest
        self._kept_preprocessor = kept_preprocessor
        trial = Trial(
            trial_id=run.trial_id,
            trainable_name=type(trainer).__name__,
            config=dict(trainer.train_loop_config or {}),
            local_path=str(run.log_dir),
            run_id=run.run_id,
        )
        self._limits = Limits(trainer.run_config, spent_s=run.recorded.spent_s)
        self._unending = unending(trainer.room.ends_by_itself or bool(judges), trainer.run_config)
        self._is_first_report = True
        self._judges = [*self._limits.judges(), *stop_judges(trainer.run_config.stop, trial.trial_id), *judges]
        self._notifier = Notifier(callbacks, trial, display.warn)
        self._logs = LogFiles(run.log_dir, left_out=[name for each in callbacks for name in each.log_files])
        self._rank_results = RankResults()
        self._files = SentFiles(run.log_dir)
        self._record = Recorder(
            run,
            config=trial.config,
            num_workers=trainer.settings.gang.num_workers,
            dataset_config=trainer.dataset_config,
        )
        self._failures: list[Failure] = []

    @property
    def progress(self) -> Progress:
        """How far it is. Safe to read from any thread."""
        history = self._record.history
        return Progress(history.newest_iteration, history.last or None, history.values)

    def set_up_callbacks(self) -> None:
        """Tell the user's callbacks that the training is about to start."""
        self._notifier.set_up(self._trainer.run_config.stop)

    # -- attempts -------------------------------------------------------------------------------------

    def attempt(self) -> Result:
        """Make one attempt, from the newest checkpoint on.

        Raises:
            TrainingFailedError: it failed; ``retry`` says whether another attempt is to be made.
        """
        number = len(self.run.attempts) + 1
        newest = self._record.attempt_starts()
        resumed_from = f"checkpoint_{newest.index:06d}" if newest is not None else None
        self.outcome, self._stopped = Outcome.FINISHED, None
        self._logs.params(self._notifier.trial.config)
        self._keep_run_file("RUNNING")
        resumed_at = newest.iteration if newest is not None else 0
        self._notifier.attempt_starts(number, resumed_at, start_of(self._trainer, newest))
        self.display.status(
            f"attempt {number}, from {resumed_from}" if resumed_from is not None else "starting the workers"
        )
        if self._unending is not None:
            self.display.warn(self._unending)
            self._unending = None  # another attempt is not another training
        try:
            returned = self._make_attempt(number, newest)
            self._record.require_saved()
            self.run.require_owned()
            self._record.attempt_succeeded(number, self.outcome, resumed_from, self._stopped)
        except BaseException as error:
            failure = self._failed(error, number, resumed_from)
            if failure is error:
                raise
            raise failure from error
        forget_error(self.run.log_dir)
        self._show_remarks()
        if self._stopped is not None:
            self.display.say(f"stopped: {self._stopped}{self._what_is_kept()}")
        return self._record.result(returned)

    def _make_attempt(self, number: int, newest: SavedCheckpoint | None) -> list[Any]:
        """Start the workers, train and end them. Gives what the training function returned, by rank."""
        if (over := self._limits.time_is_over()) is not None:  # the attempt before failed when there was none left
            self.outcome, self._stopped = Outcome(over.reason), over
            return []
        plan = plan_attempt(
            number,
            self._trainer,
            self.run,
            resume_from=newest,
            in_step=any(judge.in_step for judge in self._judges),
            ingest=self._ingest,
            all_ranks=self._notifier.hears_all_ranks,
        )
        try:
            with Attempt(plan) as attempt:
                self._follow(attempt)
        finally:
            self._limits.attempt_ended()
            self._record.spent(self._limits.spent_s, soon=False)  # it is written with the record of the attempt
        return attempt.returned

    def _follow(self, attempt: Attempt) -> None:
        """Take in what happens in an attempt, until it ends and its checkpoints are saved.

        Rank 0 lives until this returns or raises, and may be storing a checkpoint.
        """
        try:
            self._read(attempt)
        except BaseException as error:
            if cause_of(error) is Cause.CANCELLED:
                quickly = not isinstance(error, SuspendedInThreadError)
                self._record.rescue(attempt.unread_reports(_LAST_REPORTS_S), attempt.store, quickly=quickly)
            raise

    def _read(self, attempt: Attempt) -> None:
        try:
            for event in attempt:
                self._take_in(event, attempt)
        except TrainingFailedError as failure:
            if attempt.stacks is not None and (problem := keep_stacks(attempt.stacks, failure, self.run.log_dir)):
                self.display.say(problem)
            self._wait_for_checkpoints()
            raise
        self._wait_for_checkpoints()

    def _take_in(self, event: AttemptEvent, attempt: Attempt) -> None:
        self.run.require_owned()
        match event:
            case Report():
                verdict = self.report(event, attempt.store, judges=() if attempt.is_stopping else self._judges)
                if verdict is not Verdict.CONTINUE:
                    attempt.stop()
            case RankReports():
                self._notifier.reported_by_all(event.iteration, self._rank_results.of(event))
            case Output():
                self._logs.printed(event.rank, event.text)
                self.display.output(event.rank, event.text, event.is_error)
            case EpochRead():
                self._record.epoch_read(event)
                self._show_remarks()
            case Seeded():
                self._record.seeded(event)
            case FileSent():
                if (problem := self._files.write(event)) is not None:
                    self.display.say(problem)
            case Tick():
                self._announce_checkpoints()
                self._show_remarks()
                self._record.require_registry()
                attempt.settle_checkpoints(self._record.settled_checkpoint)
                judges = [judge for judge in self._judges if judge.between_reports]
                if not attempt.is_stopping and self._ask(judges) is not Verdict.CONTINUE:
                    attempt.stop(after_last_report=True)
                if self._limits.is_to_be_noted():
                    self._record.spent(self._limits.spent_s, soon=True)
            case Note():
                self.display.say(event.text)
            case DataOpened():
                self._record.data_opened(event.ingest, self._kept_preprocessor)
            case Started():
                self.run.workers_started()
                self._limits.workers_started()
                self._logs.workers_started(len(self.run.attempts) + 1, event.workers)
                self._record.history.workers_started(event.workers[0])
                self._rank_results.workers_started(event.workers)
                self.display.status("training")

    def report(
        self, report: Report, fetch: Callable[[str, str], None], judges: Sequence[Judge] | None = None
    ) -> Verdict:
        """Record a report, show it, and ask the judges about it.

        Args:
            report: What rank 0 reported.
            fetch: Brings a folder on rank 0's disk to a location, where this process cannot see that disk.
            judges: Whom to ask. Default: all of them.
        """
        result = self._record.report(report, fetch)
        self._show_remarks()
        if report.metrics is None:
            self._announce_checkpoints()
            return Verdict.CONTINUE
        self._logs.reported(result)
        self._notifier.reported(report.iteration, result)
        self._announce_checkpoints()
        self.display.progress(report.iteration, self._total(), result)
        if self._is_first_report:
            self._is_first_report = False
            self._warn_of_unreported()
        return self._ask(self._judges if judges is None else judges)

    def _warn_of_unreported(self) -> None:
        trainer, judged = self._trainer, self._record.history.judged
        if (problem := unreported(trainer.room.ends_by_itself, trainer.run_config.stop, judged)) is not None:
            self.display.warn(problem)

    def _ask(self, judges: Sequence[Judge]) -> Verdict:
        ruling = rule(judges, self._record.history.judged)
        if ruling.verdict is not Verdict.CONTINUE:
            self.outcome, self._stopped = ruling.outcome, ruling.stopped
        return ruling.verdict

    def _announce_checkpoints(self) -> None:
        for saved in self._record.newly_saved():
            self._notifier.saved(saved.iteration, as_checkpoint(saved))

    def _show_remarks(self) -> None:
        for remark in (*self._record.remarks(), *self._logs.remarks()):
            self.display.say(remark)

    def _wait_for_checkpoints(self) -> None:
        for notice in self._record.wait_for_checkpoints():
            self.display.say(notice)
        self._announce_checkpoints()

    def _what_is_kept(self) -> str:
        best, newest = self.run.checkpoints.kept.best(), self.run.checkpoints.newest()
        if best:
            return f". The best checkpoint is checkpoint_{best[-1].index:06d}."
        if newest is not None:
            return f". The newest checkpoint is checkpoint_{newest.index:06d}, in memory alone: num_to_keep is 0."
        return ". No checkpoint was saved."

    def _failed(self, error: BaseException, number: int, resumed_from: str | None) -> BaseException:
        """Record a failed attempt; gives the error to raise."""
        if isinstance(error, RunLostError):  # the run is another process's, and so is its record
            return error
        suspended = isinstance(error, SuspendedInThreadError)
        self._record.drop_unsaved(quickly=cause_of(error) is Cause.CANCELLED and not suspended)
        self._show_remarks()
        if isinstance(error, TrainingFailedError):
            failure = error
        else:
            cause = cause_of(error)
            if cause is Cause.CANCELLED:
                outcome = Outcome.SUSPENDED if suspended else Outcome.CANCELLED
                self._record.attempt_interrupted(number, outcome, resumed_from)
                newest = self.run.checkpoints.newest()
                if suspended and newest is not None and newest.held is not None:
                    self.display.say(_NOT_SAVED)
                return error
            failure = TrainingFailedError(f"{error} (attempt {number})", cause=cause, attempt=number)
        lost = self._record.attempt_failed(failure, resumed_from)
        newest = self.run.checkpoints.newest()
        known = Failure.of(failure, newest.index if newest is not None else None)
        decision = decide(known, self._failures, self._trainer.run_config.failure_config)
        self._failures.append(known)
        failure.retry = decision is Decision.RETRY
        if failure.retry:
            failure.retry_after_s = pause_before_retry([each.cause for each in self._failures])
            where = f"; what its ranks were doing is in {failure.stacks_file}" if failure.stacks_file else ""
            start = f"checkpoint_{newest.index:06d}" if newest is not None else "the start"
            soon = f" in {failure.retry_after_s:g} s" if failure.retry_after_s else ""
            self.display.say(f"{failure}; trying again{soon} from {start}, {lost} iteration(s) lost{where}")
            return failure
        if decision is Decision.GIVE_UP_REPEATED:
            failure.add_note(f"\n{_NOT_RETRIED}")
        failure.result = self.so_far()
        failure.result.error = failure.raised
        if (problem := keep_error(failure, self.run.log_dir)) is not None:
            self.display.say(problem)
        return failure

    def _total(self) -> int | None:
        """How many iterations there will be, where it can be guessed: for showing progress only."""
        stop = self._trainer.run_config.stop
        if isinstance(stop, dict) and "training_iteration" in stop:
            return int(stop["training_iteration"])
        for name in _EPOCH_PARAMS:
            if isinstance(value := self._notifier.trial.config.get(name), int):
                return value
        return None

    # -- between attempts -----------------------------------------------------------------------------

    def continue_from(self, store: CheckpointStore, trainer: DataParallelTrainer, numbers: dict[str, float]) -> None:
        """Go on from another training's newest checkpoint and with another config, without counting back.

        Args:
            store: The other training's checkpoints.
            trainer: What to train from now on.
            numbers: What changed in its config, as metrics.
        """
        self._trainer = trainer
        config = self._notifier.trial.config = dict(trainer.train_loop_config or {})
        self._record.copy_from(store, config, numbers)
        self._show_remarks()

    def so_far(self) -> Result:
        """What has come of it by now."""
        return self._record.result(None)

    def finished_before(self) -> Result:
        """What has come of it, if it was finished before this process continued it."""
        return self._record.result([])

    def summary(self, error: BaseException | None) -> TrainingSummary:
        """How it went; ``error`` is what it ended with. To be asked for before :meth:`close`."""
        config = self._trainer.run_config.checkpoint_config
        return TrainingSummary(
            name=self.run.name,
            url=self.run.url,
            artifacts=self.run.artifact_root,
            attempts=tuple(self.run.attempts),
            checkpoints=tuple(reversed(self.run.checkpoints.kept.best())),
            score=config.checkpoint_score_attribute,
            order=config.checkpoint_score_order,
            rows=self._record.history.rows(),
            error=error,
        )

    # -- ending ---------------------------------------------------------------------------------------

    def close(self, error: BaseException | None) -> None:
        """End the run: FINISHED, FAILED, KILLED when somebody ended it, or SCHEDULED when somebody suspended it."""
        try:
            self._logs.close()  # first, so that callbacks find complete files
            if not isinstance(error, RunLostError):  # the folder is another process's by now
                remove_empty(self.run.log_dir)
                self._keep_run_file(status_after(error))
            self._notifier.ended(self._record.history.newest_iteration, error)
            if (problem := self._files.save(self.run)) is not None:
                self.display.say(problem)
        finally:
            self._close_run(status_after(error), failed=error is not None)
            self.display.close(succeeded=error is None)

    def _keep_run_file(self, status: str) -> None:
        write_run_file(self.run, "training", status, self._trainer.run_config.checkpoint_config)

    def _close_run(self, status: str, *, failed: bool) -> None:
        try:
            self.run.close(status)
        except ConnectionFailedError as away:
            if not failed:
                raise
            self.display.say(f"{away} The run is ended there when it answers.")
        finally:
            self._show_remarks()
