"""What earlier processes of a sweep did: its trials, and what the sampler and the scheduler learn from them."""

from __future__ import annotations

from trainlib._execution.causes import Cause
from trainlib._execution.reported import is_number
from trainlib._registry.attempts import AttemptRecord, Outcome, recorded_attempts
from trainlib._registry.client import connect
from trainlib._registry.finding import find_recorded_run
from trainlib._registry.recorded_sweep import RecordedSweep, RecordedTrial
from trainlib._training.error_file import kept_error
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import FormatError, TrainingFailedError, raised_in
from trainlib.result import Result
from trainlib.tune._life import TrialState, recalled
from trainlib.tune._plan import SweepPlan
from trainlib.tune._point import Point
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._search import Search
from trainlib.tune._trial import SweepTrial
from trainlib.tune.schedulers import TrialScheduler

__all__ = ["learn_from", "recall", "results_of"]


def recall(plan: SweepPlan, sweep: RecordedSweep) -> list[SweepTrial]:
    """All trials that the registry knows. Those that have not ended wait to be run."""
    return [_recall(plan, sweep, recorded) for recorded in sweep.trials()]


def learn_from(trial: SweepTrial, search: Search, scheduler: TrialScheduler) -> None:
    """Let the sampler and the scheduler see what they would have seen of a trial."""
    if scheduler.decides and trial.before is not None and trial.metric is not None:
        for row in trial.before.history:
            if is_number(row.get(trial.metric)) and scheduler.time_attr in row:
                scheduler.on_result(trial.number, row)  # what it says about it is past
    if trial.state.is_final:
        stopped = trial.state is TrialState.STOPPED
        search.record_score(trial.point, trial.final_score, iteration=trial.iteration, stopped=stopped)


def results_of(plan: SweepPlan, run_id: str) -> ResultGrid:
    """What the registry has of a sweep, without going on with it."""
    store = store_of(plan.run_config)
    client = connect(store)
    run = find_recorded_run(client, run_id, plan.run_config, store)
    results = [trial.result or trial.before for trial in recall(plan, RecordedSweep(client, run))]
    return ResultGrid(
        [result for result in results if result is not None],
        metric=plan.metric,
        mode=plan.mode,
        run_id=run_id,
        run_url=run.url,
        trials_url=run.trials_url,
    )


def _recall(plan: SweepPlan, sweep: RecordedSweep, recorded: RecordedTrial) -> SweepTrial:
    trial = plan.trial_at(_point_of(recorded))
    trial.name = recorded.run.info.run_name
    trial.recorded = recorded
    trial.before = sweep.result_of(
        recorded, metric=plan.metric, config=trial.trainer.run_config.checkpoint_config, shown=trial.config
    )
    trial.recall_progress(trial.before.history)
    attempts = recorded_attempts(recorded.run.data.tags)
    outcome = attempts[-1].outcome if attempts else None
    trial.state = recalled(recorded.run.info.status, outcome, resume_errored=plan.resume_errored)
    if trial.state is TrialState.ERROR:
        trial.error = _recalled_error(attempts[-1] if attempts else None, trial.before)
    if trial.state.is_final:
        trial.result = trial.before
        trial.result.error = raised_in(trial.error)
    return trial


def _point_of(recorded: RecordedTrial) -> Point:
    try:
        return Point.loads(recorded.point)
    except ValueError as error:
        raise FormatError(
            f"trial {recorded.number} of the sweep (MLflow run {recorded.run.info.run_id}) cannot be read: {error}. If an older "
            "trainlib wrote it, begin the sweep anew, under another RunConfig.name"
        ) from None


def _recalled_error(attempt: AttemptRecord | None, result: Result) -> TrainingFailedError:
    """What a trial has failed with: as its last attempt says, and as the trial's folder has it, if that is on this machine."""
    if attempt is None:
        return TrainingFailedError("it failed", cause=Cause.USER)
    failure = TrainingFailedError(
        attempt.message or "it failed",
        cause=_cause_of(attempt.outcome),
        rank=attempt.rank,
        node=attempt.node,
        attempt=attempt.number,
    )
    failure.__cause__ = kept_error(result.log_dir) if result.log_dir is not None else None
    return failure


def _cause_of(outcome: Outcome) -> Cause:
    """The cause that a failed attempt was recorded with."""
    return Cause(outcome.value) if outcome.value in list(Cause) else Cause.USER
