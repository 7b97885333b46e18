"""The flow that runs a sweep: trials fan out as tasks, as many at once as the cluster holds."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from typing import Literal

import ray
from prefect.runtime import flow_run

from trainlib._execution import cluster, signals, warm_up
from trainlib._execution.local_ray import SPARE_CPUS
from trainlib._execution.waiting import (
    CancelledInThreadError,
    SuspendedInThreadError,
    cancelled_by,
    raise_if_cancelled,
)
from trainlib._registry import tags
from trainlib._training.retry_policy import most_retries
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import SweepFailedError
from trainlib.flows._describing import describe_flow_run, kept_name, tags_of, what_of
from trainlib.flows._embedded import flow_run_url
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._form_flow import form_flow
from trainlib.flows._interrupted import mark_interrupted
from trainlib.flows._local import shows_trainings
from trainlib.flows._notifying import notifies
from trainlib.flows._suspending import suspension_raised
from trainlib.flows.forms import (
    CheckpointSection,
    DataSection,
    DatasetPaths,
    EnvironmentSection,
    FailureSection,
    MoreTrainers,
    NumWorkers,
    RunSection,
    ScalingSection,
    SearchSpace,
    TrainerChoice,
)
from trainlib.flows.spec import TrainSpec
from trainlib.flows.tune_spec import TuneSection, TuneSpec
from trainlib.tasks._stopped import result_in
from trainlib.tasks._sweep_artifacts import SweepArtifacts
from trainlib.tasks.trial import trial as trial_task
from trainlib.tune._capacity import require_room
from trainlib.tune._config import SchedulerName
from trainlib.tune._plots import load_plotting, save_plots
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._search import SearchName
from trainlib.tune._sweep import Sweep
from trainlib.tune._table import SweepTerminal
from trainlib.tune._trial import SweepTrial
from trainlib.tune._tuner import Tuner

__all__ = ["sweep"]

_LOOK_S = 0.5
_CLUSTER_S = 5.0
# A cancelled sweep ends within 10 s; this is what its trials get of them.
_CANCEL_S = 8.0


def _flow_run_name() -> str:
    given = flow_run.parameters
    return f"sweep · {', '.join(form.kind for form in (given['trainer'], *given.get('compare_with', ())))}"


@notifies
@form_flow(name="sweep", flow_run_name=kept_name(_flow_run_name))
def sweep(
    trainer: TrainerChoice,
    param_space: SearchSpace = {},  # noqa: B006  # it is only read, and a form shows it as empty
    metric: str = "",
    mode: Literal["max", "min"] = "max",
    num_samples: int = 1,
    num_workers: NumWorkers = 1,
    name: str = "",
    search_alg: SearchName = "random",
    scheduler: SchedulerName = "fifo",
    datasets: DatasetPaths = {},  # noqa: B006
    compare_with: MoreTrainers = [],  # noqa: B006
    tune_config: TuneSection = TuneSection(),
    scaling_config: ScalingSection = ScalingSection(),
    run_config: RunSection = RunSection(),
    checkpoint_config: CheckpointSection = CheckpointSection(),
    failure_config: FailureSection = FailureSection(),
    dataset_config: DataSection = DataSection(),
    runtime_env: EnvironmentSection = EnvironmentSection(),
) -> ResultGrid:
    """Try a training with many settings, and compare what comes out in MLflow.

    Args:
        trainer: Which trainer, and what it needs.
        param_space: Settings to try, by setting of the trainer, e.g. {"train_loop_config": {"lr": {"loguniform": [0.0001, 0.1]},
            "batch_size": {"choice": [16, 32]}}}. Also grid_search, uniform, quniform, randint, and the others of trainlib.tune.
        metric: The reported metric that trials are compared by. Empty: they are not compared.
        mode: Whether a high or a low value of the metric is better.
        num_samples: How many trials to run. With a grid, how often to run each of its points. -1: until time_budget_s is over.
        num_workers: Workers of each trial, each in its own process.
        name: The sweep's name. If the last sweep with this name was interrupted, it is continued. Empty: a name is made up.
        search_alg: How values are chosen.
        scheduler: Which trials are stopped early. fifo: none.
        datasets: What get_dataset_shard gives, by name: paths or URIs of CSV, Parquet or JSON Lines files. 'train' is split
            across the workers of a trial, the others are whole on each worker.
        compare_with: More trainers, of any kind. Each is tried as the first one is, on the same data, and all are compared in one table.
            Settings in param_space that one of them does not have do not concern it; params, which several have, reaches all of these.
        tune_config: How many trials run at once, and for how long.
        scaling_config: What each worker gets, and where workers are placed.
        run_config: Where the trials are kept, and when each of them ends.
        checkpoint_config: Which checkpoints of each trial are kept.
        failure_config: What is retried.
        dataset_config: Which datasets are split across the workers.
        runtime_env: What workers need besides what their machines have: packages, variables and code.
    """
    train = TrainSpec.of_parameters(
        trainer,
        num_workers,
        name,
        datasets,
        scaling_config,
        run_config,
        checkpoint_config,
        failure_config,
        dataset_config,
        runtime_env,
    )
    spec = TuneSpec.of_parameters(
        train,
        compare_with,
        param_space,
        tune_config,
        metric=metric,
        mode=mode if metric else None,
        num_samples=num_samples,
        search_alg=search_alg,
        scheduler=scheduler,
    )
    return outliving_prefect(lambda: sweep_here(spec.tuner()))


def sweep_here(tuner: Tuner) -> ResultGrid:
    """Run a sweep within the flow run that this is called in."""
    with store_of(tuner.run_config).in_use():
        return _sweep(tuner)


def _sweep(tuner: Tuner) -> ResultGrid:
    flow_run_id = str(flow_run.id)
    name = describe_flow_run(_title_of(tuner), tags_of(tuner.trainer))
    note = tags.of_flow_run(name, flow_run_url(flow_run_id))
    terminal = SweepTerminal(
        tuner.run_config.name or tuner.name, tuner.run_config.verbose, is_watched=shows_trainings.get()
    )
    sweep = Sweep.open(tuner.plan, flow_run_id=flow_run_id, tags=note, say=terminal.say, warn=terminal.warn)
    terminal.name = sweep.run.name
    artifacts = SweepArtifacts(sweep)
    try:
        mark_interrupted(sweep.run, flow_run_id, terminal.say)
        artifacts.open()
        if sweep.metric is not None:
            load_plotting()
        with signals.remembered(), cluster.in_use():
            FanOut(sweep, terminal, artifacts).run()
        if sweep.fatal is not None:
            raise sweep.fatal
        plots = save_plots(sweep, terminal.say)
    except BaseException as error:
        sweep.close(error)
        terminal.close(sweep)
        if isinstance(error, Exception):  # whoever cancels it does not want to wait for the server
            artifacts.close([])
        if error is sweep.fatal and any(trial.error is error for trial in sweep.trials):
            raise SweepFailedError(
                f"a trial failed, and fail_fast is set: {error}", _grid(sweep, flow_run_id)
            ) from error
        raise
    sweep.close(None, plots)
    terminal.close(sweep)
    artifacts.close(plots)
    return _grid(sweep, flow_run_id)


def _title_of(tuner: Tuner) -> str:
    """What runs of a tuner are called, e.g. ``train_digits · 8 trials``."""
    subject = what_of(tuner.trainer) if len(tuner.trainers) == 1 else tuner.name
    what, total = tuner.run_config.name or subject, tuner.plan.total
    return (
        f"{what} · {total} trials" if total is not None else f"{what} · {tuner.tune_config.time_budget_s:g} s of trials"
    )


def _grid(sweep: Sweep, flow_run_id: str) -> ResultGrid:
    return ResultGrid(
        sweep.results,
        metric=sweep.metric,
        mode=sweep.mode,
        run_id=sweep.run.run_id,
        run_url=sweep.run.url,
        trials_url=sweep.trials_url,
        flow_run_id=flow_run_id,
    )


class FanOut:
    """Keeps as many trials running as there is room for. Each has a thread, in which its task is called."""

    def __init__(self, sweep: Sweep, terminal: SweepTerminal, artifacts: SweepArtifacts) -> None:
        self._sweep = sweep
        self._terminal = terminal
        self._artifacts = artifacts
        self._threads: list[threading.Thread] = []
        failure = sweep.plan.run_config.failure_config
        self._task = trial_task.with_options(name="trial", retries=most_retries(failure))

    def run(self) -> None:
        """Return when no trial is left to run, and none runs."""
        warm_up.wait()
        cluster.connect()
        total, looked = ray.cluster_resources(), time.monotonic()
        plan = self._sweep.plan
        limit = plan.config.max_concurrent_trials
        # On a machine of our own, the CPUs to spare are not real ones. And wherever workers hold theirs while they wait
        # for data, somebody has to have one to read them with.
        spare = SPARE_CPUS if plan.reads_data or (cluster.is_local() and limit is None) else 0
        if (gang := plan.gang) is not None:
            require_room(total, spare, limit, gang)
        try:
            while not self._sweep.is_over:
                raise_if_cancelled()
                signals.raise_lost()
                if time.monotonic() - looked > _CLUSTER_S:  # nodes may have come or gone
                    total, looked = cluster.resources(total), time.monotonic()
                self._sweep.end_if_time_is_over()
                while (trial := self._sweep.next_trial(total, spare)) is not None:
                    self._start(trial)
                self._wait_for_a_change()
                self._terminal.update(self._sweep)
                self._artifacts.update()
        except SuspendedInThreadError:
            self._sweep.suspend()
            self._join(None)
            raise
        except BaseException:
            self._sweep.cancel()
            self._join(_CANCEL_S)
            raise
        self._join(None)

    def _start(self, trial: SweepTrial) -> None:
        context = contextvars.copy_context()  # the task has to know its flow run
        thread = threading.Thread(
            target=context.run, args=(self._run_trial, trial), name=f"trial-{trial.number}", daemon=True
        )
        self._threads = [running for running in self._threads if running.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _run_trial(self, trial: SweepTrial) -> None:
        result, error = None, None
        with cancelled_by(trial.cancel):
            try:
                with suspension_raised():
                    result = result_in(self._task(self._sweep, trial, self._terminal))
            except BaseException as problem:
                error = problem
        if trial.cancel.is_set():
            result, error = None, CancelledInThreadError()
        try:
            self._sweep.ended(trial, result, error)
        except Exception as problem:  # e.g. MLflow does not answer any more; here nobody would hear of it
            self._sweep.fail(problem)

    def _wait_for_a_change(self) -> None:
        changes = self._sweep.changes
        try:
            changes.get(timeout=_LOOK_S)
            while True:
                changes.get_nowait()
        except queue.Empty:
            pass

    def _join(self, seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
