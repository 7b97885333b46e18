"""What earlier processes of a sweep did: its trials, and what the sampler and the scheduler learned from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trainlib.errors import TrainingFailedError
from trainlib.execution.causes import Cause
from trainlib.registry.run import read_run
from trainlib.registry.sweeps import RecordedTrial
from trainlib.result import Result
from trainlib.tune.result_grid import ResultGrid
from trainlib.tune.trial import SweepTrial, TrialState

if TYPE_CHECKING:
    from trainlib.tune.plan import SweepPlan
    from trainlib.tune.sweep import Sweep

__all__ = ["recall", "results_of"]


def recall(sweep: Sweep) -> list[SweepTrial]:
    """All trials that the registry knows. Those that have not ended wait to be run."""
    return [_recalled(sweep, recorded) for recorded in sweep.registry.recorded()]


def results_of(plan: SweepPlan, run_id: str) -> ResultGrid:
    """What the registry has of a sweep, without going on with it."""
    from trainlib.tune.sweep import Sweep

    run = read_run(run_id, plan.run_config)
    try:
        sweep = Sweep(plan, run, tags={})
        trials = recall(sweep)
    finally:
        run.metrics.close()
    return ResultGrid(
        [trial.result or _so_far(sweep, trial) for trial in trials],
        metric=sweep.metric,
        mode=sweep.mode,
        run_id=run_id,
        run_url=sweep.run.url,
    )


def _so_far(sweep: Sweep, trial: SweepTrial) -> Result:
    assert trial.recorded is not None
    history = sweep.registry.history(trial.recorded, sweep.metric)
    return sweep.registry.result_of(trial.recorded, history, trial.trainer.run_config, trial.config)


def _recalled(sweep: Sweep, recorded: RecordedTrial) -> SweepTrial:
    trial = sweep.trial_of(recorded.point, sweep.plan.space.config_of(recorded.point))
    trial.name = recorded.run.info.run_name
    trial.recorded = recorded
    history = sweep.registry.history(recorded, sweep.metric)
    if history:
        trial.latest, trial.iteration = history[-1], history[-1]["training_iteration"]
        trial.score = next((row[sweep.metric] for row in reversed(history) if sweep.metric in row), None)
    _learn(sweep, trial.number, history)
    last = _last_attempt(recorded.run.data.tags)
    match recorded.run.info.status:
        case "FINISHED":
            trial.state = TrialState.STOPPED if last.get("outcome") == "stopped" else TrialState.TERMINATED
        case "FAILED" if not sweep.plan.resume_errored:
            trial.state = TrialState.ERROR
            cause = Cause(last["outcome"]) if last.get("outcome") in list(Cause) else Cause.USER
            trial.error = TrainingFailedError(last.get("message") or "it failed", cause=cause)
        case _:
            return trial
    trial.result = sweep.registry.result_of(recorded, history, trial.trainer.run_config, trial.config)
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


def _last_attempt(tags: dict[str, str]) -> dict[str, Any]:
    records = sorted(key for key in tags if key.startswith("trainlib.attempt."))
    return json.loads(tags[records[-1]]) if records else {}
