"""One logical training, through all of its attempts: it follows them, asks its judges, and ends the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib._execution.attempt import Attempt
from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.events import (
    AttemptEvent,
    DataOpened,
    EpochRead,
    Note,
    Output,
    Report,
    Started,
    Tick,
)
from trainlib._registry.attempts import Outcome
from trainlib._registry.checkpoints import CheckpointStore, as_checkpoint
from trainlib._registry.run import RegisteredRun
from trainlib._training.display import Display
from trainlib._training.judges import Judge, Verdict, rule, stop_judges
from trainlib._training.notifying import Notifier
from trainlib._training.planning import plan_attempt, trial_id_of
from trainlib._training.recorder import Recorder
from trainlib._training.retry_policy import Decision, decide
from trainlib.callbacks import Callback, Trial
from trainlib.errors import ConnectionFailedError, RunLostError, TrainingFailedError
from trainlib.result import Result

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib.trainer import DataParallelTrainer

__all__ = ["Progress", "Training"]

# How long whoever ends a training waits until rank 0 has said what it has reported.
_LAST_REPORTS_S = 1.0

_EPOCH_PARAMS = ("num_epochs", "epochs", "max_epochs", "num_iterations")


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
            judges: Asked after each report, after those for the trainer's own ``RunConfig.stop``.
            callbacks: The user's.
        """
        self.run = run
        self.display = display
        self.outcome = Outcome.FINISHED
        """How the latest attempt ended, or would end now, if it did not fail."""
        self._trainer = trainer
        self._ingest = ingest
        self._kept_preprocessor = kept_preprocessor
        trial = Trial(
            trial_id=trial_id_of(run),
            trainable_name=type(trainer).__name__,
            config=dict(trainer.train_loop_config or {}),
            local_path=str(run.log_dir),
            run_id=run.run_id,
        )
        self._judges = [*stop_judges(trainer.run_config.stop, trial.trial_id), *judges]
        self._notifier = Notifier(callbacks, trial)
        self._record = Recorder(
            run,
            trial_id=trial.trial_id,
            config=trial.config,
            num_workers=trainer.scaling_config.num_workers,
            dataset_config=trainer.dataset_config,
        )
        self._failures: list[Cause] = []

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
        self.outcome = Outcome.FINISHED
        self._notifier.attempt_starts(number, newest.iteration if newest is not None else 0)
        self.display.status(
            f"attempt {number}, from {resumed_from}" if resumed_from is not None else "starting the workers"
        )
        in_step = any(judge.in_step for judge in self._judges)
        try:
            plan = plan_attempt(
                number, self._trainer, self.run, resume_from=newest, in_step=in_step, ingest=self._ingest
            )
            with Attempt(plan) as attempt:
                self._follow(attempt)
            self._record.require_saved()
            self.run.require_owned()
            self._record.attempt_succeeded(number, self.outcome, resumed_from)
        except BaseException as error:
            failure = self._failed(error, number, resumed_from)
            if failure is error:
                raise
            raise failure from error
        self._show_remarks()
        return self._record.result(attempt.returned)

    def _follow(self, attempt: Attempt) -> None:
        """Take in what happens in an attempt, until it ends and its checkpoints are saved.

        Rank 0 lives until this returns or raises, and may be storing a checkpoint.
        """
        try:
            self._read(attempt)
        except BaseException as error:
            if cause_of(error) is Cause.CANCELLED:
                self._record.rescue(attempt.unread_reports(_LAST_REPORTS_S), attempt.store)
            raise

    def _read(self, attempt: Attempt) -> None:
        try:
            for event in attempt:
                self._take_in(event, attempt)
        except TrainingFailedError as failure:
            if attempt.stacks is not None:
                self._keep_stacks(attempt.stacks, failure)
            self._wait_for_checkpoints()
            raise
        self._wait_for_checkpoints()

    def _take_in(self, event: AttemptEvent, attempt: Attempt) -> None:
        self.run.require_owned()
        match event:
            case Report():
                if self.report(event, attempt.store) is not Verdict.CONTINUE:
                    attempt.stop()
            case Output():
                self.display.output(event.rank, event.text, event.is_error)
            case EpochRead():
                self._record.epoch_read(event)
                self._show_remarks()
            case Tick():
                self._announce_checkpoints()
                self._show_remarks()
                self._record.require_registry()
                attempt.settle_checkpoints(self._record.settled_checkpoint)
                judges = [judge for judge in self._judges if judge.between_reports]
                if not attempt.is_stopping and self._ask(judges) is not Verdict.CONTINUE:
                    attempt.stop()
            case Note():
                self.display.say(event.text)
            case DataOpened():
                self._record.data_opened(event.ingest, self._kept_preprocessor)
            case Started():
                self._record.history.workers_started(event.workers[0])
                self.display.status("training")

    def report(self, report: Report, fetch: Callable[[str, str], None]) -> Verdict:
        """Record a report, show it, and ask the judges about it.

        Args:
            report: What rank 0 reported.
            fetch: Brings a folder on rank 0's disk to a location, where this process cannot see that disk.
        """
        result = self._record.report(report, fetch)
        self._show_remarks()
        self._announce_checkpoints()
        if report.metrics is None:
            return Verdict.CONTINUE
        self._notifier.reported(report.iteration, result)
        self.display.progress(report.iteration, self._total(), report.metrics)
        return self._ask(self._judges)

    def _ask(self, judges: Sequence[Judge]) -> Verdict:
        ruling = rule(judges, self._record.history.last)
        if ruling.verdict is not Verdict.CONTINUE:
            self.outcome = ruling.outcome
        return ruling.verdict

    def _announce_checkpoints(self) -> None:
        for saved in self._record.newly_saved():
            self._notifier.saved(saved.iteration, as_checkpoint(saved))

    def _show_remarks(self) -> None:
        for remark in self._record.remarks():
            self.display.say(remark)

    def _wait_for_checkpoints(self) -> None:
        for notice in self._record.wait_for_checkpoints():
            self.display.say(notice)
        self._announce_checkpoints()

    def _failed(self, error: BaseException, number: int, resumed_from: str | None) -> BaseException:
        """Record a failed attempt; gives the error to raise."""
        if isinstance(error, RunLostError):  # the run is another process's, and so is its record
            return error
        self._record.drop_unsaved(quickly=cause_of(error) is Cause.CANCELLED)
        self._show_remarks()
        if isinstance(error, TrainingFailedError):
            failure = error
        else:
            cause = cause_of(error)
            if cause is Cause.CANCELLED:
                self._record.attempt_cancelled(number, resumed_from)
                return error
            failure = TrainingFailedError(f"{error} (attempt {number})", cause=cause, attempt=number)
        lost = self._record.attempt_failed(failure, resumed_from)
        decision = decide(failure, self._failures, self._trainer.run_config.failure_config)
        self._failures.append(failure.cause)
        failure.retry = decision is Decision.RETRY
        if failure.retry:
            newest = self.run.checkpoints.newest()
            where = f"; what its ranks were doing is in {failure.stacks_file}" if failure.stacks_file else ""
            start = f"checkpoint_{newest.index:06d}" if newest is not None else "the start"
            self.display.say(f"{failure}; trying again from {start}, {lost} iteration(s) lost{where}")
        return failure

    def _keep_stacks(self, stacks: str, failure: TrainingFailedError) -> None:
        """Keep what the ranks of a failed attempt were doing in the training's folder, and say so in the error."""
        file = self.run.log_dir / f"stacks_attempt_{failure.attempt:03d}.txt"
        try:
            with open(
                os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", errors="replace"
            ) as output:
                output.write(stacks + "\n")
        except OSError as error:  # what the attempt failed with matters more
            self.display.say(f"what the ranks were doing could not be written to {file}: {error}")
            return
        failure.stacks_file = str(file)
        failure.add_note(f"\nAll threads of all ranks: {file}")

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

    # -- ending ---------------------------------------------------------------------------------------

    def close(self, error: BaseException | None) -> None:
        """End the run: FINISHED, FAILED, or KILLED when somebody ended it."""
        try:
            self._notifier.ended(self._record.history.newest_iteration, failed=error is not None)
        except Exception as secondary:
            if error is None:
                raise
            # What the training failed with matters more.
            self.display.say(f"a callback raised {secondary!r} at the end")
        finally:
            cancelled = error is not None and not isinstance(error, Exception)
            self._close_run(
                "FINISHED" if error is None else "KILLED" if cancelled else "FAILED", failed=error is not None
            )
            self.display.close()

    def _close_run(self, status: str, *, failed: bool) -> None:
        try:
            self.run.close(status)
        except ConnectionFailedError as away:
            if not failed:
                raise
            self.display.say(f"{away} The run is ended there when it answers.")
        finally:
            self._show_remarks()
