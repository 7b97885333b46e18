"""What earlier processes of a sweep did: its trials, and what the sampler and the scheduler learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._execution.causes import Cause
from trainlib._registry.attempts import recorded_attempts
from trainlib._registry.client import connect
from trainlib._registry.finding import find_recorded_run
from trainlib._registry.recorded_sweep import RecordedTrial
from trainlib._registry.run import RegisteredRun
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import TrainingFailedError
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._trial import SweepTrial, TrialState

if TYPE_CHECKING:
    from trainlib.tune._plan import SweepPlan
    from trainlib.tune._sweep import Sweep

__all__ = ["recall", "results_of"]


def recall(sweep: Sweep) -> list[SweepTrial]:
    """All trials that the registry knows. Those that have not ended wait to be run."""
    return [_recalled(sweep, recorded) for recorded in sweep.recorded.trials()]


def results_of(plan: SweepPlan, run_id: str) -> ResultGrid:
    """What the registry has of a sweep, without going on with it."""
    from trainlib.tune._sweep import Sweep

    store = store_of(plan.run_config)
    client = connect(store)
    run = find_recorded_run(client, run_id, plan.run_config, store)
    sweep = Sweep(plan, RegisteredRun(client, run, plan.run_config.checkpoint_config, continued=True), tags={})
    results = [trial.result or trial.before for trial in recall(sweep)]
    return ResultGrid(
        [result for result in results if result is not None],
        metric=sweep.metric,
        mode=sweep.mode,
        run_id=run_id,
        run_url=run.url,
    )


def _recalled(sweep: Sweep, recorded: RecordedTrial) -> SweepTrial:
    trial = sweep.plan.trial_at(recorded.point)
    sweep.judges(trial)
    trial.name = recorded.run.info.run_name
    trial.recorded = recorded
    trial.before = sweep.recorded.result_of(
        recorded, metric=sweep.metric, config=trial.trainer.run_config.checkpoint_config, shown=trial.config
    )
    history = trial.before.history
    if history:
        trial.latest, trial.iteration = history[-1], history[-1]["training_iteration"]
        trial.score = next((row[sweep.metric] for row in reversed(history) if sweep.metric in row), None)
    _learn(sweep, trial.number, history)
    attempts = recorded_attempts(recorded.run.data.tags)
    outcome = str(attempts[-1].outcome) if attempts else None
    match recorded.run.info.status:
        # It had ended, although its process was killed before it could say so.
        case "FINISHED" | "RUNNING" if outcome in ("finished", "stopped"):
            trial.state = TrialState.STOPPED if outcome == "stopped" else TrialState.TERMINATED
        case "FINISHED":  # the sweep's time was over before it had its turn again
            trial.state = TrialState.TERMINATED
        case "FAILED" if not sweep.plan.resume_errored:
            trial.state = TrialState.ERROR
            cause = Cause(outcome) if outcome in list(Cause) else Cause.USER
            trial.error = TrainingFailedError((attempts and attempts[-1].message) or "it failed", cause=cause)
        case _:
            return trial
    trial.result = trial.before
    trial.result.error = trial.error
    sweep.search.tell(
        trial.point,
        trial.score if trial.error is None else None,
        iteration=trial.iteration,
        stopped=trial.state is TrialState.STOPPED,
    )
    return trial


def _learn(sweep: Sweep, number: int, history: list[dict[str, Any]]) -> None:
    """Let the scheduler see what there was to see; what it says about it is past."""
    if not sweep.scheduler.decides:
        return
    for row in history:
        if sweep.metric in row and sweep.scheduler.time_attr in row:
            sweep.scheduler.on_result(number, row)
