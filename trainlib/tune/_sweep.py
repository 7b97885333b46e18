"""One sweep: which trials there are, which runs next, and what becomes of each after a result."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainlib._execution.causes import Cause, cause_of
from trainlib._execution.waiting import CancelledInThreadError
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.opening import open_run
from trainlib._registry.recorded_sweep import RecordedSweep
from trainlib._registry.run import RegisteredRun
from trainlib._registry.sweeps import TrialRegistry
from trainlib._registry.tags import FRAMEWORK, SWEEP_SPACE, SWEEP_SPENT, prefect_only
from trainlib._registry.trial_points import point_tags
from trainlib._training.history import FILLED_IN
from trainlib._training.stopping import should_stop, stops_all
from trainlib._training.terminal import Listener
from trainlib._training.training import Training, with_mlflow_callback
from trainlib.callbacks._mlflow import store_of
from trainlib.config import RunConfig
from trainlib.errors import CheckpointsNeededError, MetricNotReportedError
from trainlib.result import Result
from trainlib.tune._capacity import has_room
from trainlib.tune._plan import SweepPlan
from trainlib.tune._population import Exploit, exploit
from trainlib.tune._recall import recall
from trainlib.tune._search import Search
from trainlib.tune._shared_callbacks import SharedCallbacks
from trainlib.tune._space import Point
from trainlib.tune._trial import SweepTrial, TrialState
from trainlib.tune._trials import Trials
from trainlib.tune.schedulers import Verdict
from trainlib.tune.schedulers._pbt import PopulationBasedTraining

__all__ = ["Sweep"]

_NOTE_S = 5.0


class Sweep:
    """The state of one sweep. Trials call it from their threads; one lock keeps it whole.

    It starts no thread and no task itself: whoever runs it asks :meth:`next_trial`, and tells :meth:`ended`.
    """

    def __init__(self, plan: SweepPlan, run: RegisteredRun, tags: Mapping[str, str]) -> None:
        self.plan = plan
        self.run = run
        self.trials = Trials()
        self.changes: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Something comes in whenever there may be something to do."""
        self.fatal: BaseException | None = None
        """What ends the sweep before its time."""
        self.scheduler = plan.config.make_scheduler()
        self.metric = plan.config.metric or self.scheduler.metric
        self.mode = plan.config.mode or self.scheduler.mode
        self.search = Search(plan.space, plan.config.search_alg, mode=self.mode, seed=plan.config.seed)
        self.registry = TrialRegistry(run, tags=tags)
        self.recorded = RecordedSweep(run.client, run.recorded)
        self.callbacks = SharedCallbacks(list(plan.run_config.callbacks or ()))
        self._lock = threading.RLock()
        self._metric_was_seen = False
        self._ending = False
        self._spent_before = 0.0
        self._started = time.monotonic()
        self._best_written: float | None = None
        self._best_step = run.iterations_before
        self._noted_s = 0.0

    @classmethod
    def open(cls, plan: SweepPlan, *, flow_run_id: str | None, tags: Mapping[str, str]) -> Sweep:
        """Find or create the sweep's run, and take over what earlier processes did.

        Raises:
            ValueError: a sweep of that name was begun with another param_space.
        """
        config, extra = with_mlflow_callback(plan.run_config)
        run = open_run(
            config,
            store=store_of(config),
            default_name=f"{plan.trainable.name}_{datetime.now():%Y-%m-%d_%H-%M-%S}",
            kind="sweep",
            run=plan.restored_run,
            flow_run_id=flow_run_id,
            tags={**extra, **tags},
            require=plan.require_same_space,
        )
        try:
            sweep = cls(plan, run, prefect_only(tags) | extra)
            if run.continued:
                sweep._take_over()
            else:
                sweep._describe()
            about = {"stop": config.stop, "num_samples": plan.config.num_samples, "total_num_samples": plan.total}
            sweep.callbacks.begin(**about)
        except BaseException:
            run.close("FAILED")
            raise
        return sweep

    def _describe(self) -> None:
        config = self.plan.config
        scheduler = type(self.scheduler).__name__
        search = config.search_alg if isinstance(config.search_alg, str) else type(config.search_alg).__name__
        params = {"tuned": self.plan.trainable.name, "search_alg": search, "scheduler": scheduler}
        asked = {"metric": self.metric, "mode": self.mode, "num_samples": config.num_samples, "seed": config.seed}
        self.run.save_trainer(self.plan.settings)
        # Last: a sweep that has it can be restored.
        self.run.describe({**params, **asked, "trials": self.plan.total}, {SWEEP_SPACE: self.plan.space_digest})

    def _take_over(self) -> None:
        before = self.run.client.get_run(self.run.run_id).data.tags
        if SWEEP_SPACE not in before:  # its process was killed before it could say what it was about to do
            self.run.continued = False
            self._describe()
        else:
            self.run.save_trainer(self.plan.settings)  # it may be restored with other settings than before
        self._spent_before = float(before.get(SWEEP_SPENT, "0"))
        for trial in recall(self):
            self.trials.add(trial)
            if trial.state.is_final and trial.recorded is not None and trial.recorded.run.info.status == "RUNNING":
                self.registry.end(trial.recorded, "FINISHED")
        self._metric_was_seen = any(trial.score is not None for trial in self.trials)
        self.search.go_on_after(len(self.trials))

    # -- which trial runs next ----------------------------------------------------------------------------

    def next_trial(self, total: Mapping[str, float], spare_cpus: float) -> SweepTrial | None:
        """The trial to start now, marked as running; None if there is no room, or none is left."""
        with self._lock:
            limit = self.plan.config.max_concurrent_trials
            running = [trial.trainer.scaling_config for trial in self.trials.running]
            if self._ending or (limit is not None and len(running) >= limit):
                return None
            waiting = {trial.number: trial for trial in self.trials.waiting}
            following = self._following
            if following is None and not waiting:
                return None
            chosen = self.scheduler.first_of([*waiting, *([following] if following is not None else [])])
            gang = waiting[chosen].trainer.scaling_config if chosen in waiting else self.plan.gang
            if gang is not None and not has_room(total, spare_cpus, running, gang):
                return None
            trial = waiting.get(chosen) or self._make(chosen)
            if not has_room(total, spare_cpus, running, trial.trainer.scaling_config):
                return None  # it waits as one that has been chosen
            trial.explores = trial.state is TrialState.PAUSED
            trial.state = TrialState.RUNNING
            trial.verdict = TrialState.TERMINATED
            trial.segments += 1
            return trial

    @property
    def _following(self) -> int | None:
        """The number of the next new trial, if there is to be one."""
        number = self.trials.free_number()
        return number if self.plan.total is None or number < self.plan.total else None

    @property
    def is_over(self) -> bool:
        """Whether nothing runs and nothing is to be run."""
        with self._lock:
            return (self._ending or not self._others_wait) and not self.trials.running

    @property
    def _others_wait(self) -> bool:
        """Whether there are trials that do not run yet."""
        return self._following is not None or bool(self.trials.waiting)

    def _make(self, number: int) -> SweepTrial:
        try:
            trial = self.plan.trial_of(*self.search.ask(number))
        except Exception as error:  # a function of sample_from is the user's
            trial = self.plan.broken(Point(number, {}), error)
        self.judges(trial)
        self.trials.add(trial)
        return trial

    def judges(self, trial: SweepTrial) -> None:
        """Have the sweep see each result of a trial, beside what the user set for the end of one."""
        own = trial.trainer.run_config
        trial.ends_by_itself = own.stop is None and not self.scheduler.decides

        def judge(trial_id: str, result: dict[str, Any]) -> bool:
            return self._judge(trial, own, trial_id, result)

        callbacks = [self.callbacks] if self.plan.run_config.callbacks else None
        trial.trainer.run_config = own.model_copy(update={"stop": judge, "callbacks": callbacks, "verbose": 0})

    # -- the life of a trial, in its own thread -----------------------------------------------------------

    def begin(self, trial: SweepTrial, listeners: list[Listener]) -> Training:
        """The trial's training, ready for an attempt."""
        if trial.training is None:
            if trial.recorded is not None:
                run = self.registry.go_on(trial.recorded, trial.trainer.run_config.checkpoint_config)
            else:
                tags = {FRAMEWORK: trial.trainer.backend_config.framework}
                config = trial.trainer.run_config.checkpoint_config
                run = self.registry.create(trial.number, trial.name, trial.point, config, tags)
            params = {} if trial.recorded is not None and trial.recorded.run.data.params else trial.shown
            try:
                if trial.broken is not None:
                    raise trial.broken
                training = Training.of_trial(trial.trainer, run, listeners, params=params)
            except Exception as error:
                trial.before = Result(run_id=run.run_id, run_url=run.url, log_dir=str(run.log_dir))
                run.record(AttemptRecord(len(run.attempts) + 1, Outcome(cause_of(error)), None, message=str(error)))
                run.close("FAILED")
                raise
            training.in_step = not trial.ends_by_itself
            with self._lock:
                trial.training = training
                if self._ending:
                    trial.was_cut = True
                    training.end()
        elif not trial.explores:
            trial.verdict = TrialState.TERMINATED  # a retry is judged anew
        elif isinstance(self.scheduler, PopulationBasedTraining):
            trial.explores = False  # a retry goes on with what it was given
            with self._lock:
                taken = exploit(self.scheduler, trial, self.trials, self.plan)
            if taken is not None:
                self._take_from(trial, taken)
        assert trial.training is not None
        return trial.training

    def _take_from(self, trial: SweepTrial, taken: Exploit) -> None:
        assert trial.training is not None
        trial.point, trial.config = taken.point, self.plan.trainable.config(taken.tree)
        trial.shown = self.plan.space.shown(taken.tree)
        trial.trainer = self.plan.trainable.trainer(taken.tree, self.plan.run_fields)
        self.judges(trial)
        numbers = {f"config.{name}": value for name, value in trial.shown.items() if isinstance(value, (int, float))}
        trial.training.run.metrics.note(tags=point_tags(trial.point))
        trial.training.run.metrics.flush()  # the params first: weights without them would be another trial's
        trial.training.take_over(taken.store, trial.trainer, numbers)

    def _judge(self, trial: SweepTrial, own: RunConfig, trial_id: str, result: dict[str, Any]) -> bool:
        """A trial has reported; whether its attempt ends now."""
        with self._lock:
            trial.latest, trial.iteration = result, int(result["training_iteration"])
            self.changes.put(None)
            if self._ending:
                return True
            counts = self.metric is None or self.metric in result
            if not counts and not self._metric_was_seen:
                self._end(self._not_reported(result))
                return True
            self._metric_was_seen = True
            if counts and self.metric is not None:
                trial.score = float(result[self.metric])
            try:
                if should_stop(own.stop, trial_id, result):
                    return True
                if not counts:
                    return False  # a scheduler has nothing to compare
                verdict = self.scheduler.on_result(trial.number, result, others_wait=self._others_wait)
            except Exception as error:  # e.g. a time_attr that nobody reports: it would be so for each trial
                self._end(error)
                return True
            if verdict in (Verdict.CONTINUE, Verdict.DONE):
                return verdict is Verdict.DONE
            trial.verdict = TrialState.PAUSED if verdict is Verdict.PAUSE else TrialState.STOPPED
            assert trial.training is not None
            trial.training.ends_as = trial.verdict.value
            return True

    def _not_reported(self, result: dict[str, Any]) -> MetricNotReportedError:
        own = sorted(set(result) - FILLED_IN)
        return MetricNotReportedError(
            f"the sweep is to optimise {self.metric!r}, but the training function reports {', '.join(own) or 'nothing'}: "
            f"report {self.metric!r} each time, or set TuneConfig.metric to one of these"
        )

    def ended(self, trial: SweepTrial, result: Result | None, error: BaseException | None) -> None:
        """A trial's attempts are over, and its workers are free."""
        with self._lock:
            cut_off = error is None and trial.was_cut and self.fatal is not None
            if isinstance(error, CancelledInThreadError) or cut_off:
                trial.state = TrialState.CANCELLED
            elif getattr(error, "cause", None) is Cause.CAPACITY and len(self.trials.running) > 1:
                trial.state = TrialState.PENDING  # somebody else was quicker: there will be room when another one ends
            elif error is not None:
                trial.state, trial.error = TrialState.ERROR, error
                if trial.trainer.run_config.failure_config.fail_fast and self.fatal is None:
                    self._end(error)
            elif trial.verdict is TrialState.PAUSED and not self._ending:
                trial.state = TrialState.PAUSED
                self._require_checkpoint(trial)
            else:
                trial.state = TrialState.STOPPED if trial.verdict is TrialState.STOPPED else TrialState.TERMINATED
                if self.metric is not None and not self._metric_was_seen and not self._ending:
                    self._end(self._not_reported(trial.latest))
            if trial.state.is_final:
                self._note_end(trial, result)
            self.changes.put(None)
        if trial.state.is_final:
            self._close(trial)

    def _require_checkpoint(self, trial: SweepTrial) -> None:
        assert trial.training is not None
        if trial.training.run.checkpoints.newest() is None:
            self._end(
                CheckpointsNeededError(
                    f"{type(self.scheduler).__name__} has trials go on from checkpoints, but after iteration "
                    f"{trial.iteration} trial {trial.number} has saved none: pass one to report(), e.g. "
                    "report(metrics, checkpoint=Checkpoint.from_dict({...})), and start from get_checkpoint()"
                )
            )

    def _note_end(self, trial: SweepTrial, result: Result | None) -> None:
        trial.result = result or self._unfinished(trial)
        trial.result.error = trial.error
        trial.result.metrics = {**(trial.result.metrics or {}), "config": trial.config}
        self.scheduler.on_end(trial.number)
        if trial.state is TrialState.CANCELLED:
            return
        value = trial.score if trial.error is None else None
        stopped = trial.state is TrialState.STOPPED
        self.search.tell(trial.point, value, iteration=trial.iteration, stopped=stopped)
        best = self.best()
        if best is not None and best.score is not None and best.score != self._best_written:
            self._best_written = best.score
            self._best_step = max(self._best_step + 1, self.trials.ended)
            self.run.metrics.write(
                self._best_step, {f"best_{self.metric}": best.score}, time.time(), warn=lambda text: None
            )

    def _unfinished(self, trial: SweepTrial) -> Result:
        result = trial.training.so_far() if trial.training is not None else trial.before or Result()
        result.metrics = result.metrics or dict(trial.latest)
        return result

    def _close(self, trial: SweepTrial) -> None:
        """End a trial's run, and let go of what only a running trial needs."""
        if trial.training is not None:
            cancelled = CancelledInThreadError() if trial.state is TrialState.CANCELLED else None
            trial.training.close(trial.error or cancelled)
        elif trial.recorded is not None and trial.error is None:  # it did not have its turn again
            self.registry.end(trial.recorded, "KILLED" if trial.state is TrialState.CANCELLED else "FINISHED")
        if not isinstance(self.scheduler, PopulationBasedTraining):  # there, others may still take over its weights
            trial.training = None

    # -- ending -------------------------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        """Seconds that the sweep has run, in all processes."""
        return self._spent_before + time.monotonic() - self._started

    def end_if_time_is_over(self) -> None:
        """End the sweep once its time budget is spent, or a stopper says so that no trial has asked for long.

        What is spent is noted, for a process that goes on with it.
        """
        budget = self.plan.config.time_budget_s
        if budget is not None and self.spent_s - self._noted_s >= _NOTE_S:
            self._noted_s = self.spent_s
            self.run.client.set_tag(self.run.run_id, SWEEP_SPENT, f"{self._noted_s:.1f}")
        with self._lock:
            is_spent = budget is not None and self.spent_s >= budget
            if not self._ending and (is_spent or stops_all(self.plan.run_config.stop)):
                self._end(None)

    def fail(self, error: BaseException) -> None:
        """End the sweep, since it cannot be recorded any more."""
        with self._lock:
            self._end(error)

    def _end(self, fatal: BaseException | None) -> None:
        """Let running trials end soon, and start no other."""
        self.fatal = self.fatal or fatal
        self._ending = True
        for trial in self.trials.running:
            trial.was_cut = True
            if trial.training is not None:
                if fatal is not None:
                    trial.training.ends_as = "cut off"
                trial.training.end()
        self.changes.put(None)

    def cancel(self) -> None:
        """End all trials at once; what they have not saved is lost."""
        with self._lock:
            self._ending = True
            for trial in self.trials.running:
                trial.cancel.set()

    def close(self, error: BaseException | None) -> None:
        """End the trials that wait, and the sweep's own run."""
        cancelled = error is not None and not isinstance(error, Exception)
        try:
            for trial in self.trials.waiting:
                trial.state = TrialState.CANCELLED if error is not None else TrialState.TERMINATED
                if trial.training is None and trial.recorded is None:
                    trial.state = TrialState.CANCELLED  # it was chosen, and never ran
                else:
                    self._note_end(trial, None)
                    self._close(trial)
            self.callbacks.end()
        finally:
            self.run.close("FINISHED" if error is None else "KILLED" if cancelled else "FAILED")

    # -- what there is ------------------------------------------------------------------------------------

    def best(self) -> SweepTrial | None:
        """The trial that is best by now; None as long as none is."""
        return self.trials.best(self.mode)

    @property
    def results(self) -> list[Result]:
        """What the trials gave, by their number."""
        by_number = sorted(self.trials, key=lambda trial: trial.number)
        return [trial.result for trial in by_number if trial.result is not None]
