"""The flow that tunes: trials fan out as tasks, as many at once as the cluster holds."""

from __future__ import annotations

import contextvars
import queue
import threading
import time

import ray
from prefect import flow
from prefect.runtime import flow_run

from trainlib._execution import cluster, signals, warm_up
from trainlib._execution.waiting import CancelledInThreadError, cancelled_by, raise_if_cancelled
from trainlib._registry import tags
from trainlib._training.retry_policy import most_retries
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import SweepFailedError
from trainlib.flows._embedded import flow_run_url
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._interrupted import mark_interrupted
from trainlib.flows._local import shows_trainings
from trainlib.flows.tune_spec import TuneSpec
from trainlib.tasks._sweep_artifacts import SweepArtifacts
from trainlib.tasks.trial import trial as trial_task
from trainlib.tune._capacity import require_room
from trainlib.tune._plots import load_plotting, save_plots
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._sweep import Sweep
from trainlib.tune._table import SweepTerminal
from trainlib.tune._trial import SweepTrial
from trainlib.tune._tuner import Tuner

__all__ = ["tune"]

_LOOK_S = 0.5
_CLUSTER_S = 5.0
# A cancelled sweep ends within 10 s; this is what its trials get of them.
_CANCEL_S = 8.0


@flow(name="tune", flow_run_name="tune · {spec.title}", persist_result=False)
def tune(spec: TuneSpec) -> ResultGrid:
    """Try a training with many settings, and compare what comes out in MLflow.

    Args:
        spec: What to train, what to try, and how.
    """
    return outliving_prefect(lambda: tune_here(spec.tuner()))


def tune_here(tuner: Tuner) -> ResultGrid:
    """Run a sweep within the flow run that this is called in."""
    with store_of(tuner.run_config).in_use():
        return _tune(tuner)


def _tune(tuner: Tuner) -> ResultGrid:
    flow_run_id = str(flow_run.id)
    note = tags.of_flow_run(flow_run.name, flow_run_url(flow_run_id))
    terminal = SweepTerminal(
        tuner.run_config.name or tuner.name, tuner.run_config.verbose if shows_trainings.get() else 0
    )
    sweep = Sweep.open(tuner.plan, flow_run_id=flow_run_id, tags=note, say=terminal.say)
    terminal.name = sweep.run.name
    artifacts = SweepArtifacts(sweep)
    try:
        mark_interrupted(sweep.run, flow_run_id, terminal.say)
        artifacts.open()
        if sweep.metric is not None:
            load_plotting()
        with signals.remembered():
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
    sweep.close(None)
    terminal.close(sweep)
    artifacts.close(plots)
    return _grid(sweep, flow_run_id)


def _grid(sweep: Sweep, flow_run_id: str) -> ResultGrid:
    return ResultGrid(
        sweep.results,
        metric=sweep.metric,
        mode=sweep.mode,
        run_id=sweep.run.run_id,
        run_url=sweep.run.url,
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
        spare = cluster.SPARE_CPUS if plan.reads_data or (cluster.is_local() and limit is None) else 0
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
                result = self._task(self._sweep, trial, self._terminal)
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
