"""What earlier processes of a sweep did: its trials, and what the sampler and the scheduler learned from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trainlib._execution.causes import Cause
from trainlib._registry.opening import read_run
from trainlib._registry.sweeps import RecordedTrial
from trainlib.errors import TrainingFailedError
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._trial import SweepTrial, TrialState

if TYPE_CHECKING:
    from trainlib.tune._plan import SweepPlan
    from trainlib.tune._sweep import Sweep

__all__ = ["recall", "results_of"]


def recall(sweep: Sweep) -> list[SweepTrial]:
    """All trials that the registry knows. Those that have not ended wait to be run."""
    return [_recalled(sweep, recorded) for recorded in sweep.registry.recorded()]


def results_of(plan: SweepPlan, run_id: str) -> ResultGrid:
    """What the registry has of a sweep, without going on with it."""
    from trainlib.tune._sweep import Sweep

    run = read_run(run_id, plan.run_config)
    try:
        sweep = Sweep(plan, run, tags={})
        results = [trial.result or trial.before for trial in recall(sweep)]
    finally:
        run.metrics.close()
    return ResultGrid(
        [result for result in results if result is not None],
        metric=sweep.metric,
        mode=sweep.mode,
        run_id=run_id,
        run_url=sweep.run.url,
    )


def _recalled(sweep: Sweep, recorded: RecordedTrial) -> SweepTrial:
    trial = sweep.plan.trial_at(recorded.point)
    sweep.judges(trial)
    trial.name = recorded.run.info.run_name
    trial.recorded = recorded
    trial.before = sweep.registry.result_of(recorded, sweep.metric, trial.trainer.run_config, trial.config)
    history = trial.before.history
    if history:
        trial.latest, trial.iteration = history[-1], history[-1]["training_iteration"]
        trial.score = next((row[sweep.metric] for row in reversed(history) if sweep.metric in row), None)
    _learn(sweep, trial.number, history)
    last = _last_attempt(recorded.run.data.tags)
    outcome = last.get("outcome")
    match recorded.run.info.status:
        # It had ended, although its process was killed before it could say so.
        case "FINISHED" | "RUNNING" if outcome in ("finished", "stopped"):
            trial.state = TrialState.STOPPED if outcome == "stopped" else TrialState.TERMINATED
        case "FINISHED":  # the sweep's time was over before it had its turn again
            trial.state = TrialState.TERMINATED
        case "FAILED" if not sweep.plan.resume_errored:
            trial.state = TrialState.ERROR
            cause = Cause(outcome) if outcome in list(Cause) else Cause.USER
            trial.error = TrainingFailedError(last.get("message") or "it failed", cause=cause)
        case _:
            return trial
    trial.result = trial.before
    trial.result.error = trial.error
    sweep.search.record_score(
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


def _last_attempt(tags: dict[str, str]) -> dict[str, Any]:
    records = sorted(key for key in tags if key.startswith("trainlib.attempt."))
    return json.loads(tags[records[-1]]) if records else {}
