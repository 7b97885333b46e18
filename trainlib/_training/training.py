"""One logical training: its run in the registry and what has been reported, through all of its attempts."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib import _storage as storage
from trainlib._data.rows import RowCounts
from trainlib._execution import attempt as execution
from trainlib._execution.causes import Cause, cause_of, may_retry
from trainlib._execution.events import EpochRead, Report
from trainlib._execution.group import Member
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.waiting import gather
from trainlib._execution.worker_session import Assignment
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.checkpoints import CheckpointStore, as_checkpoint
from trainlib._registry.inputs import log_inputs
from trainlib._registry.metrics import rows_read
from trainlib._registry.opening import open_run
from trainlib._registry.params import flat
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.run import RegisteredRun
from trainlib._registry.tags import FRAMEWORK
from trainlib._training.history import History
from trainlib._training.stopping import should_stop
from trainlib._training.terminal import Listener
from trainlib.callbacks import Callback, MLflowLoggerCallback, Trial
from trainlib.callbacks._mlflow import store_of
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig
from trainlib.errors import TrainingFailedError
from trainlib.result import Result
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib.trainer import DataParallelTrainer

_SAVING_NOTICE_S = 5.0
_EPOCH_PARAMS = ("num_epochs", "epochs", "max_epochs", "num_iterations")


class Training:
    """Opens the run, makes attempts, and ends the run. Whoever retries calls :meth:`attempt` again.

    It does not decide to retry: the error says whether the budget allows it, and Prefect does it.
    """

    def __init__(self, trainer: DataParallelTrainer, run: RegisteredRun, listeners: list[Listener]) -> None:
        self.trainer = trainer
        self.run = run
        self.listeners = listeners
        self._callbacks: list[Callback] = list(trainer.run_config.callbacks or ())
        self._failures: Counter[Cause] = Counter()
        self._members: list[Member] = []
        self._preprocessor_before = _fitted_before(trainer, run)
        self._ingest = _ingest_of(trainer, self._preprocessor_before or trainer.preprocessor)
        self._data_is_logged = False
        self._rows = RowCounts(trainer.scaling_config.num_workers)
        self._ending = threading.Event()
        self.in_step = trainer.run_config.stop is not None
        """Whether its ranks wait at each report until it is known that they go on: it may be stopped there."""
        self.ends_as = "finished"
        """What is recorded of an attempt that ends without an error; whoever ends it early says so here."""
        self._config = dict(trainer.train_loop_config or {})
        self._trial = Trial(
            trial_id=run.run_id[:8],
            trainable_name=type(trainer).__name__,
            config=self._config,
            local_path=str(run.log_dir),
            run_id=run.run_id,
        )
        self._history = History(
            trial_id=self._trial.trial_id,
            experiment_id=run.experiment_id,
            config=self._config,
            newest_iteration=run.iterations_before,
            seconds=newest.seconds if (newest := run.checkpoints.newest()) is not None else 0.0,
        )

    @classmethod
    def open(
        cls,
        trainer: DataParallelTrainer,
        *,
        flow_run_id: str | None = None,
        tags: dict[str, str] | None = None,
        listeners: list[Listener],
    ) -> Training:
        """Find or create the training's run, and describe it."""
        config, extra = with_mlflow_callback(trainer.run_config)
        if trainer.resume_from_checkpoint is not None:
            trainer.resume_from_checkpoint.require()
        trainer.sources  # noqa: B018  # data that cannot be read are told before there is a run
        settings = trainer.dumps()
        run = open_run(
            config,
            store=store_of(config),
            default_name=f"{type(trainer).__name__}_{datetime.now():%Y-%m-%d_%H-%M-%S}",
            kind="training",
            run=trainer.restored_run,
            flow_run_id=flow_run_id,
            tags={**extra, **(tags or {})},
        )
        try:
            run.describe(params=params_of(trainer), tags={FRAMEWORK: trainer.backend_config.framework})
            if not run.continued:
                run.save_trainer(settings)
            training = cls(trainer, run, listeners)
            for callback in training._callbacks:
                callback.setup(stop=config.stop, num_samples=1, total_num_samples=1)
        except BaseException:
            run.close("FAILED")
            raise
        return training

    @classmethod
    def of_trial(
        cls, trainer: DataParallelTrainer, run: RegisteredRun, listeners: list[Listener], *, params: dict[str, Any]
    ) -> Training:
        """The training of a trial, whose run a sweep has opened; ``params`` are written with its first metrics."""
        if params or not run.continued:
            run.metrics.note(params=flat({**params_of(trainer), **params}))
        return cls(trainer, run, listeners)

    def take_over(
        self,
        store: CheckpointStore,
        trainer: DataParallelTrainer,
        numbers: dict[str, float],
    ) -> None:
        """Go on from another training's newest checkpoint and with another config, without counting back."""
        self.trainer = trainer
        self._config = dict(trainer.train_loop_config or {})
        self._trial.config = self._config
        self._history.config_is(self._config)
        iteration = self._history.newest_iteration
        self.run.checkpoints.copy_newest_of(store, iteration=iteration, seconds=self._history.seconds)
        self.run.metrics.write(iteration, numbers, time.time(), warn=self.say)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each iteration so far."""
        return self._history.rows(earlier=self.run.recorded.history.rows)

    # -- attempts -------------------------------------------------------------------------------------

    def attempt(self) -> Result:
        """Make one attempt, from the newest checkpoint on.

        Raises:
            TrainingFailedError: it failed; ``retry`` tells whether the failure budget allows another one.
        """
        number = len(self.run.attempts) + 1
        self.ends_as = "finished"
        newest = self.run.checkpoints.newest()
        self.run.checkpoints.in_use = newest
        resumed_at = newest.iteration if newest else 0
        self._history.attempt_starts(resumed_at)
        self._rows.attempt_starts(resumed_at)
        self._notify("on_trial_start" if number == 1 else "on_trial_restore", iteration=resumed_at)
        resumed_from = f"checkpoint_{newest.index:06d}" if newest else None
        self._status(f"attempt {number}, from {resumed_from}" if resumed_from else "starting the workers")
        plan = AttemptPlan(
            number=number,
            scaling=self.trainer.scaling_config,
            backend=self.trainer.backend_config,
            function=self.trainer.bound_function(),
            assignment=self._assignment(newest),
            spares=self.trainer.run_config.failure_config.max_failures != 0,
            ingest=self._ingest,
        )
        try:
            returned = execution.run(plan, self)
            self._require_saved()
        except BaseException as error:
            failure = self._failed(error, number, resumed_from)
            if failure is error:
                raise
            raise failure from error
        self.run.checkpoints.in_use = None
        self.run.checkpoints.prune()
        self.run.record_success(AttemptRecord(number, Outcome(self.ends_as), resumed_from))
        return self.so_far(returned)

    def _assignment(self, newest: SavedCheckpoint | None) -> Assignment:
        resume = as_checkpoint(newest) if newest else self.trainer.resume_from_checkpoint
        return Assignment(
            context=TrainContext(
                trial_name=self.run.name,
                trial_id=self._trial.trial_id,
                trial_dir=str(self.run.log_dir),
                trial_resources=self.trainer.scaling_config.worker_resources,
                experiment_name=self.run.experiment_name,
                storage_path=self.run.artifact_root,
                run_id=self.run.run_id,
            ),
            iterations_done=newest.iteration if newest else 0,
            next_checkpoint=newest.index + 1 if newest else _number_in(resume),
            resume_from=resume,
            checkpoint_config=self.trainer.run_config.checkpoint_config,
            staging=self.run.checkpoints.make_staging_folder(),
            shares_disk=self.run.checkpoints.is_local,
            in_step=self.in_step,
            environment=self.run.store.environment,
            import_path=[os.path.abspath(path) for path in sys.path],
        )

    def _failed(self, error: BaseException, number: int, resumed_from: str | None) -> BaseException:
        """Record a failed attempt; gives the error to raise."""
        for problem in self.run.checkpoints.settle():
            self.say(f"a checkpoint could not be saved: {problem}")
        self.run.checkpoints.clear_staging()
        if isinstance(error, TrainingFailedError):
            failure = error
        else:
            cause = cause_of(error)
            if cause is Cause.CANCELLED:
                self.run.record(AttemptRecord(number, Outcome(cause), resumed_from))
                return error
            failure = TrainingFailedError(f"{error} (attempt {number})", cause=cause, attempt=number)
        newest = self.run.checkpoints.newest()
        lost = max(0, self._history.newest_iteration - (newest.iteration if newest else 0))
        self.run.record(
            AttemptRecord(number, Outcome(failure.cause), resumed_from, failure.rank, failure.node, lost, str(failure))
        )
        self._failures[failure.cause] += 1
        failure.retry = may_retry(failure.cause, self._failures, self.trainer.run_config.failure_config)
        if failure.retry:
            start = f"checkpoint_{newest.index:06d}" if newest else "the start"
            self.say(f"{failure}; trying again from {start}, {lost} iteration(s) lost")
        return failure

    def _require_saved(self) -> None:
        """A training whose checkpoints could not be saved has not succeeded."""
        if errors := self.run.checkpoints.settle():
            raise errors[0]

    # -- what an attempt tells --------------------------------------------------------------------------

    def say(self, text: str) -> None:
        for listener in self.listeners:
            listener.say(text)

    def _status(self, text: str) -> None:
        for listener in self.listeners:
            listener.status(text)

    def data_opened(self, ingest: Ingest) -> None:
        if self._data_is_logged:
            return
        log_inputs(self.run.client, self.run.run_id, [each.facts for each in ingest.opened.values()])
        if ingest.preprocessor is not None and ingest.preprocessor is not self._preprocessor_before:
            self.run.save_preprocessor(cloudpickle.dumps(ingest.preprocessor))
        self._data_is_logged = True

    def epoch_read(self, rank: int, read: EpochRead) -> None:
        rows = self._rows.add(rank, read.dataset, read.rows, read.iteration)
        if rows is not None:
            is_split = self.trainer.dataset_config.splits(read.dataset)
            metrics = rows_read(read.dataset, rows, is_split=is_split)
            self.run.metrics.write(read.iteration, metrics, time.time(), warn=self.say)

    def started(self, members: list[Member]) -> None:
        self._members = members
        self._history.workers_started(members[0].facts)
        self._status("training")

    def output(self, rank: int, text: str, is_error: bool) -> None:
        for listener in self.listeners:
            listener.output(rank, text, is_error)

    def report(self, report: Report) -> bool:
        metrics = report.metrics
        result = self._history.add(report) if metrics is not None else {}
        if report.checkpoint is None:
            if metrics:
                self.run.metrics.write(report.iteration, metrics, report.timestamp, warn=self.say)
        else:
            self._save(report)
        if metrics is None:
            return False
        self._trial.last_result = result
        self._notify("on_trial_result", iteration=report.iteration, result=result)
        for listener in self.listeners:
            listener.progress(report.iteration, self._total(), metrics)
        return should_stop(self.trainer.run_config.stop, self._trial.trial_id, result)

    def ends_now(self) -> bool:
        return self._ending.is_set()

    def end(self) -> None:
        """End the present attempt, from any thread: at its next report, or after a moment without one."""
        self._ending.set()

    def settle(self) -> None:
        while waiting := self.run.checkpoints.wait(timeout=_SAVING_NOTICE_S):
            self.say(f"saving {waiting} checkpoint(s) to {self.run.artifact_root}")

    def _save(self, report: Report) -> None:
        staged = report.checkpoint
        assert staged is not None
        metrics = report.metrics or {}
        pending = self.run.checkpoints.create(
            index=staged.index,
            iteration=report.iteration,
            metrics=metrics,
            score=staged.score,
            seconds=self._history.seconds,
        )
        self.run.metrics.write(report.iteration, metrics, report.timestamp, model_id=pending.model_id, warn=self.say)
        self.run.checkpoints.commit_in_background(
            pending, staged.path, upload=self._store, flush_metrics=self.run.metrics.flush
        )
        self._notify("on_checkpoint", iteration=report.iteration, checkpoint=Checkpoint(staged.path))

    def _store(self, folder: str, location: str) -> None:
        if self.run.checkpoints.is_local:
            storage.upload(Path(folder), location)
        else:
            gather([self._members[0].actor.store.remote(folder, location)])

    # -- results --------------------------------------------------------------------------------------

    def _total(self) -> int | None:
        """How many iterations there will be, where it can be guessed: for showing progress only."""
        stop = self.trainer.run_config.stop
        if isinstance(stop, dict) and "training_iteration" in stop:
            return int(stop["training_iteration"])
        for name in _EPOCH_PARAMS:
            if isinstance(value := self._config.get(name), int):
                return value
        return None

    def so_far(self, returned: list[Any] | None = None) -> Result:
        """What has come of it by now; ``returned`` is what each rank's function returned, once they have."""
        checkpoints = self.run.checkpoints
        newest = checkpoints.newest()
        return Result(
            metrics=self._history.finished() if returned is not None else dict(self._history.last),
            checkpoint=as_checkpoint(newest) if newest else None,
            log_dir=str(self.run.log_dir),
            best_checkpoints=[(as_checkpoint(saved), dict(saved.metrics)) for saved in checkpoints.best()],
            run_id=self.run.run_id,
            run_url=self.run.url,
            attempts=len(self.run.attempts),
            returned=returned or [],
            rows=self._rows.by_dataset(),
            history=self.rows(),
        )

    # -- ending ---------------------------------------------------------------------------------------

    def close(self, error: BaseException | None) -> None:
        """End the run: FINISHED, FAILED, or KILLED when somebody ended it."""
        try:
            event = "on_trial_complete" if error is None else "on_trial_error"
            self._notify(event, iteration=self._history.newest_iteration)
            for callback in self._callbacks:
                callback.on_experiment_end([self._trial])
        except Exception as secondary:
            if error is None:
                raise
            self.say(f"a callback raised {secondary!r} at the end")  # what the training failed with matters more
        finally:
            cancelled = error is not None and not isinstance(error, Exception)
            self.run.close("FINISHED" if error is None else "KILLED" if cancelled else "FAILED")
            for listener in self.listeners:
                listener.close()

    def _notify(self, event: str, *, iteration: int, **more: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, event)(iteration=iteration, trials=[self._trial], trial=self._trial, **more)


def _fitted_before(trainer: DataParallelTrainer, run: RegisteredRun) -> Any:
    """The preprocessor that an earlier process fitted for this run; whoever is given a fitted one, takes that."""
    if trainer.preprocessor is None or not run.continued:
        return None
    from trainlib._data.preprocessors import is_fitted

    kept = None if is_fitted(trainer.preprocessor) else run.load_preprocessor()
    return cloudpickle.loads(kept) if kept is not None else None


def _ingest_of(trainer: DataParallelTrainer, preprocessor: Any) -> Ingest | None:
    if not trainer.datasets:
        return None
    from trainlib._data.ingest import Ingest

    return Ingest(trainer.datasets, sources=trainer.sources, config=trainer.dataset_config, preprocessor=preprocessor)


def params_of(trainer: DataParallelTrainer) -> dict[str, Any]:
    """What the registry keeps as params of a training."""
    return {
        **(trainer.train_loop_config or {}),
        "trainer": type(trainer).__name__,
        "num_workers": trainer.scaling_config.num_workers,
        "use_gpu": trainer.scaling_config.use_gpu,
    }


def _number_in(checkpoint: Checkpoint | None) -> int:
    """A training that starts from another's checkpoint counts on from its number, as Ray's guide shows."""
    if checkpoint is None:
        return 0
    kind, held = checkpoint.get_internal_representation()
    if kind == "dict":
        return int(held.get("_current_checkpoint_id", 0))
    name = str(held).rstrip("/").rsplit("/", 1)[-1]
    number = name.removeprefix("checkpoint_")
    return int(number) if number != name and number.isdigit() else 0


def with_mlflow_callback(config: RunConfig) -> tuple[RunConfig, dict[str, str]]:
    """What an MLflowLoggerCallback says about the run: it is the run that there is anyway."""
    tags: dict[str, str] = {}
    for callback in config.callbacks or ():
        if isinstance(callback, MLflowLoggerCallback):
            tags.update(callback.tags)
            if callback.experiment_name and not config.experiment_name:
                config = config.model_copy(update={"experiment_name": callback.experiment_name})
    return config, tags


__all__ = ["Training"]
