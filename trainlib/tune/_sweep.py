"""One sweep: it starts trials from its agenda, judges their results, and records how they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from trainlib._autofilled import as_reported
from trainlib._execution.causes import cause_of
from trainlib._execution.reported import is_number
from trainlib._execution.waiting import CancelledInThreadError, SuspendedInThreadError
from trainlib._registry.attempts import Outcome
from trainlib._registry.notes import Section
from trainlib._registry.run import RegisteredRun
from trainlib._registry.statuses import status_after
from trainlib._training.display import Display
from trainlib._training.judges import Judge, Verdict
from trainlib._training.opening import open_trial
from trainlib._training.stopping import stops_all
from trainlib._training.training import Training
from trainlib.errors import CheckpointsNeededError, MetricNotReportedError, raised_in
from trainlib.result import Result
from trainlib.tune._agenda import Agenda
from trainlib.tune._life import TrialState, after_run, at_end_of_sweep
from trainlib.tune._note import trials_section
from trainlib.tune._plan import SweepPlan
from trainlib.tune._plots import artifact_path
from trainlib.tune._population import Exploit, exploit
from trainlib.tune._recall import learn_from, recall
from trainlib.tune._record import SweepRecord
from trainlib.tune._search import Search
from trainlib.tune._shared_callbacks import SharedCallbacks
from trainlib.tune._trial import SweepTrial
from trainlib.tune._trials import Trials

__all__ = ["Sweep"]


class Sweep:
    """The state of one sweep. Trials call it from their threads; one lock keeps it whole.

    It starts no thread and no task itself: whoever runs it asks :meth:`next_trial`, runs :meth:`start`'s training, and
    calls :meth:`ended`.
    """

    def __init__(self, plan: SweepPlan, record: SweepRecord, warn: Callable[[str], None] = lambda text: None) -> None:
        """``warn`` shows which callback has raised something."""
        self.plan = plan
        self.record = record
        self.trials = Trials()
        self.changes: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Something comes in whenever there may be something to do."""
        self.fatal: BaseException | None = None
        """What ends the sweep before its time."""
        self.scheduler = plan.config.make_scheduler()
        self.search = Search(plan.space, plan.config.search_alg, mode=plan.mode, seed=plan.config.seed)
        self._agenda = Agenda(plan, self.trials, self.search, self.scheduler)
        self._callbacks = SharedCallbacks(list(plan.run_config.callbacks or ()), warn)
        self._lock = threading.RLock()
        self._metric_was_seen = False
        self._ending = False

    @classmethod
    def open(
        cls,
        plan: SweepPlan,
        *,
        flow_run_id: str | None,
        tags: Mapping[str, str],
        say: Callable[[str], None] = lambda text: None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> Sweep:
        """Find or create the sweep's run, and take over what earlier processes did; ``say`` shows which of the two, and ``warn``
        which callback has raised something.

        Raises:
            ValueError: the sweep that was asked for was begun with another param_space.
        """
        record = SweepRecord.open(plan, flow_run_id=flow_run_id, tags=tags, say=say)
        try:
            sweep = cls(plan, record, warn)
            if record.describe(plan, sweep.scheduler):
                sweep._take_over()
            sweep._callbacks.begin(
                stop=plan.run_config.stop, num_samples=plan.config.num_samples, total_num_samples=plan.total
            )
        except BaseException:
            record.run.close("FAILED")
            raise
        return sweep

    def _take_over(self) -> None:
        for trial in recall(self.plan, self.record.recorded):
            self.trials.add(trial)
            learn_from(trial, self.search, self.scheduler)
            if trial.state.is_final and trial.recorded is not None and trial.recorded.run.info.status == "RUNNING":
                self.record.end_trial(trial.recorded, "FINISHED")
        self._metric_was_seen = any(trial.score is not None for trial in self.trials)
        self.search.reseed_after(len(self.trials))

    # -- starting trials ----------------------------------------------------------------------------------

    def next_trial(self, total: Mapping[str, float], spare_cpus: float) -> SweepTrial | None:
        """The trial to start now, marked as running; None if there is no room, or none is left.

        Args:
            total: What the cluster has, by resource.
            spare_cpus: How many of its CPUs trials must not take.
        """
        with self._lock:
            trial = None if self._ending else self._agenda.next_trial(total, spare_cpus)
            if trial is not None:
                trial.explores = trial.state is TrialState.PAUSED
                trial.state = TrialState.RUNNING
                trial.segments += 1
            return trial

    @property
    def is_over(self) -> bool:
        """Whether nothing runs and nothing is to be run."""
        with self._lock:
            return (self._ending or self._agenda.is_empty) and not self.trials.running

    def start(self, trial: SweepTrial, display: Display) -> Training:
        """The trial's training, ready for an attempt. Called in the trial's own thread, for each attempt."""
        if trial.training is None:
            trial.training = self._open(trial, display)
        elif trial.explores:
            trial.explores = False  # a retry goes on with what it was given
            with self._lock:
                taken = exploit(self.scheduler, trial, self.trials, self.plan)
            if taken is not None:
                self._continue_from(trial, trial.training, taken)
        return trial.training

    def _open(self, trial: SweepTrial, display: Display) -> Training:
        run = self.record.open_trial(trial)
        try:
            if trial.broken is not None:
                raise trial.broken
            written = trial.recorded is not None and bool(trial.recorded.run.data.params)
            return open_trial(
                trial.trainer,
                run,
                params={} if written else trial.shown,
                display=display,
                judges=self._judges_of(trial),
                callbacks=[self._callbacks] if self.plan.run_config.callbacks else [],
            )
        except Exception as error:
            trial.before = Result(run_id=run.run_id, run_url=run.url, log_dir=run.log_dir)
            self.record.fail_trial(run, error, Outcome(cause_of(error)))
            raise

    def _continue_from(self, trial: SweepTrial, training: Training, taken: Exploit) -> None:
        trial.point, trial.config = taken.point, self.plan.trainable.config(taken.tree)
        trial.shown = self.plan.space.shown(taken.tree)
        trial.trainer = self.plan.trainable.trainer(taken.tree, self.plan.run_fields)
        self.record.change_point(training.run, trial.point)
        numbers = {f"config.{name}": value for name, value in trial.shown.items() if isinstance(value, (int, float))}
        training.continue_from(taken.store, trial.trainer, numbers)

    # -- judging results ----------------------------------------------------------------------------------

    def _judges_of(self, trial: SweepTrial) -> list[Judge]:
        """Who is asked after each report of a trial, after what the user gave as ``RunConfig.stop``."""

        def stop_if(condition: bool) -> Verdict:
            return Verdict.STOP if condition else Verdict.CONTINUE

        return [
            Judge(partial(self._judge, trial), stopped_as=Outcome.STOPPED, in_step=self.scheduler.decides),
            Judge(lambda result: stop_if(self.scheduler.is_complete(result)), in_step=self.scheduler.decides),
            Judge(
                lambda result: stop_if(self.fatal is not None),
                stopped_as=Outcome.CUT_OFF,
                in_step=False,
                between_reports=True,
            ),
            Judge(lambda result: stop_if(self._ending), in_step=False, between_reports=True),
        ]

    def _judge(self, trial: SweepTrial, result: dict[str, Any]) -> Verdict:
        """What the scheduler says. A sweep that cannot compare its trials ends, and with it the trial."""
        metric = self.plan.metric
        with self._lock:
            if metric is not None and not is_number(result.get(metric)):
                if not self._metric_was_seen and not trial.trainer.room.reports_rarely(metric):
                    self._end(self._not_reported(result))
                return Verdict.CONTINUE  # a scheduler has nothing to compare
            self._metric_was_seen = True
            try:
                return self.scheduler.on_result(trial.number, result, others_wait=not self._agenda.is_empty)
            except Exception as error:  # e.g. a time_attr that nobody reports: it would be so for each trial
                self._end(error)
                return Verdict.CONTINUE

    def _not_reported(self, result: dict[str, Any]) -> MetricNotReportedError:
        metric = self.plan.metric
        own = ", ".join(sorted(map(str, as_reported(result)))) or "nothing"
        return MetricNotReportedError(
            f"the sweep optimises {metric!r}, but the training function reports {own}: report {metric!r} each time, or set "
            "TuneConfig.metric to one of these"
        )

    # -- ending trials ------------------------------------------------------------------------------------

    def ended(self, trial: SweepTrial, result: Result | None, error: BaseException | None) -> None:
        """A trial's attempts are over, and its workers are free."""
        with self._lock:
            others_run = len(self.trials.running) > 1
            trial.state = after_run(trial.outcome, error, sweep_ends=self._ending, others_run=others_run)
            match trial.state:
                case TrialState.ERROR:
                    trial.error = error
                    if trial.trainer.run_config.failure_config.fail_fast:
                        self._end(error)
                case TrialState.PAUSED:
                    self._require_checkpoint(trial)
                case TrialState.TERMINATED:
                    if self.plan.metric is not None and not self._metric_was_seen and not self._ending:
                        self._end(self._not_reported(trial.latest))
            if trial.state.is_final:
                self._settle(trial, result)
            self.changes.put(None)
        if trial.state.is_final:
            self._close(trial)

    def _require_checkpoint(self, trial: SweepTrial) -> None:
        assert trial.training is not None
        if trial.training.run.checkpoints.newest() is None:
            self._end(
                CheckpointsNeededError(
                    f"{type(self.scheduler).__name__} continues trials from checkpoints, but trial {trial.number} has saved "
                    f"none by iteration {trial.iteration}: pass one to report(), e.g. "
                    "report(metrics, checkpoint=Checkpoint.from_dict({...})), and start from get_checkpoint()"
                )
            )

    def _settle(self, trial: SweepTrial, result: Result | None) -> None:
        """Keep what a trial gave, and let the search and the scheduler know."""
        if result is None:
            result = trial.training.so_far() if trial.training is not None else trial.before or Result()
            result.metrics = result.metrics or dict(trial.latest)
        trial.result = result
        result.error = raised_in(trial.error)
        result.metrics = {**(result.metrics or {}), "config": trial.config}
        self.scheduler.on_end(trial.number)
        if trial.state is TrialState.CANCELLED:
            return
        stopped = trial.state is TrialState.STOPPED
        self.search.record_score(trial.point, trial.final_score, iteration=trial.iteration, stopped=stopped)
        best = self.best()
        self.record.note_best(self.plan.metric, best.score if best is not None else None, self.trials.ended)

    def _close(self, trial: SweepTrial) -> None:
        """End a trial's run, and let go of what only a running trial needs."""
        interrupted = None
        if trial.state is TrialState.CANCELLED:
            interrupted = SuspendedInThreadError() if trial.cancel.suspends else CancelledInThreadError()
        if trial.training is not None:
            trial.training.close(trial.error or interrupted)
        elif trial.recorded is not None and trial.error is None:  # it did not have its turn again
            self.record.end_trial(trial.recorded, status_after(interrupted))
        if not self.scheduler.needs_checkpoints:  # otherwise others may still go on from its checkpoints
            trial.release()

    # -- ending the sweep ---------------------------------------------------------------------------------

    def end_if_time_is_over(self) -> None:
        """End the sweep once its time budget is spent, or a stopper says so that no trial has asked for long.

        Raises:
            RunLostError: another process has taken over the sweep.
        """
        self.run.require_owned()
        budget = self.plan.config.time_budget_s
        if budget is not None:
            self.record.note_time()
        with self._lock:
            is_spent = budget is not None and self.spent_s >= budget
            if not self._ending and (is_spent or stops_all(self.plan.run_config.stop)):
                self._end(None)

    def fail(self, error: BaseException) -> None:
        """End the sweep, since it cannot be recorded any more."""
        with self._lock:
            self._end(error)

    def _end(self, fatal: BaseException | None) -> None:
        """Start no more trials. Those that run are stopped by their judges, soon."""
        self.fatal = self.fatal or fatal
        self._ending = True
        self.changes.put(None)

    def cancel(self) -> None:
        """End all trials at once; what they have not saved is lost."""
        with self._lock:
            self._ending = True
            for trial in self.trials.running:
                trial.cancel.set()

    def suspend(self) -> None:
        """End all trials at once. They go on from their newest checkpoints when the sweep is resumed."""
        with self._lock:
            self._ending = True
            for trial in (*self.trials.running, *self.trials.waiting):
                trial.cancel.suspend()

    def close(self, error: BaseException | None, plots: Sequence[Path] = ()) -> None:
        """End the trials that wait, and the sweep's own run, whose description shows the trials and the plots."""
        try:
            for trial in self.trials.waiting:
                has_run = trial.training is not None or trial.recorded is not None
                trial.state = at_end_of_sweep(has_run=has_run, failed=error is not None)
                if has_run:
                    self._settle(trial, None)
                    self._close(trial)
            self._callbacks.end()
        finally:
            self.record.close(error, self._described(plots))

    def _described(self, plots: Sequence[Path]) -> Section:
        return trials_section(
            list(self.trials),
            experiment_id=self.run.experiment_id,
            run_id=self.run.run_id,
            metric=self.metric,
            mode=self.mode,
            plots=[artifact_path(plot) for plot in plots],
        )

    # -- what there is ------------------------------------------------------------------------------------

    @property
    def run(self) -> RegisteredRun:
        """The sweep's own run, the parent of its trials' runs."""
        return self.record.run

    @property
    def trials_url(self) -> str:
        """The table of its trials in the MLflow UI."""
        return self.run.recorded.trials_url

    @property
    def metric(self) -> str | None:
        return self.plan.metric

    @property
    def mode(self) -> Literal["max", "min"] | None:
        return self.plan.mode

    @property
    def spent_s(self) -> float:
        """Seconds that the sweep has run, in all processes."""
        return self.record.spent_s

    def best(self) -> SweepTrial | None:
        """The trial that is best by now; None as long as none is."""
        return self.trials.best(self.plan.mode)

    @property
    def results(self) -> list[Result]:
        """What the trials gave, by their number."""
        by_number = sorted(self.trials, key=lambda trial: trial.number)
        return [trial.result for trial in by_number if trial.result is not None]
