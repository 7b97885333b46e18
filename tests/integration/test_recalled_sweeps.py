"""What a sweep knows after its process was killed, at moments that no signal hits reliably."""

from __future__ import annotations

import re
import time

import pytest

from tests.integration.led_by_hand import CPUS, abandon, begin, kill, no_fetch, start, status, train_func
from trainlib import DataParallelTrainer, RunConfig, tune
from trainlib._execution.causes import Cause
from trainlib._execution.events import Report
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._training.display import Display
from trainlib._training.judges import Verdict
from trainlib._training.opening import open_training
from trainlib.errors import TrainingFailedError
from trainlib.tune import ASHAScheduler, TuneConfig, Tuner
from trainlib.tune._life import TrialState
from trainlib.tune._sweep import Sweep


def test_a_trial_that_has_no_turn_again_keeps_what_it_had(registry):
    killed = begin("no-turn")
    start(killed, 5.0)
    start(killed, 2.0, 0.5)
    kill(killed)
    registry.set_tag(killed.run.run_id, "mlflow.note.content", "written by a person")
    sweep = begin("no-turn", time_budget_s=1e-9)
    sweep.end_if_time_is_over()
    assert sweep.is_over
    sweep.close(None)
    assert [result.metrics["loss"] for result in sweep.results] == [5.0, 0.5]
    ids = [f"{sweep.run.run_id[:5]}_00000", f"{sweep.run.run_id[:5]}_00001"]
    assert [result.metrics["trial_id"] for result in sweep.results] == ids
    assert [trial.training.run.trial_id for trial in killed.trials] == ids
    assert [status(registry, trial) for trial in sweep.trials] == ["FINISHED", "FINISHED"]
    note = registry.get_run(sweep.run.run_id).data.tags["mlflow.note.content"]
    assert note.startswith("written by a person\n\n### Trials\n\n[Table of all trials](#/experiments/")
    rows = re.findall(r"^\| \[(\d)\]\(#/experiments/\d+/runs/(\w+)\?", note, re.MULTILINE)
    assert rows == [(str(each), sweep.trials[each].recorded.run.info.run_id) for each in (1, 0)], "the best one first"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("finished", TrialState.TERMINATED), ("stopped", TrialState.STOPPED), ("paused", None), ("cut off", None)],
)
def test_a_trial_whose_end_is_recorded_does_not_run_again(registry, outcome, state):
    killed = begin(f"recorded-{outcome}")
    trial = start(killed, 5.0)
    trial.training.run.record_success(AttemptRecord(1, Outcome(outcome), None))
    kill(killed)
    sweep = begin(f"recorded-{outcome}")
    (recalled,) = sweep.trials
    if state is None:
        assert recalled.state.waits
        assert status(registry, recalled) == "RUNNING"
    else:
        assert recalled.state is state
        assert status(registry, recalled) == "FINISHED"
        assert sweep.results[0].metrics["loss"] == 5.0
    sweep.close(None)


def test_a_sweep_and_a_training_of_one_name_are_two_things(registry):
    run_config = RunConfig(name="one-name", verbose=0)
    training = open_training(DataParallelTrainer(train_func, run_config=run_config).inspect())
    abandon(training.run)
    sweep = begin("one-name")
    assert sweep.run.run_id != training.run.run_id
    kill(sweep)
    again = open_training(DataParallelTrainer(train_func, run_config=run_config).inspect())
    assert again.run.run_id == training.run.run_id
    again.close(None)
    sweep.close(None)


def test_another_space_is_another_sweep_and_an_error_for_one_that_is_restored(registry):
    begun = begin("other-space")
    kill(begun)
    other = {"x": tune.grid_search([0, 1])}
    with pytest.raises(ValueError, match="was begun with another param_space, and is not finished"):
        Sweep.open(Tuner.restore(begun.run.run_id, param_space=other).plan, flow_run_id=None, tags={})
    assert registry.get_run(begun.run.run_id).info.status == "RUNNING", "it stays as it is"
    said: list[str] = []
    tuner = Tuner(train_func, param_space=other, run_config=RunConfig(name="other-space", verbose=0))
    sweep = Sweep.open(tuner.plan, flow_run_id=None, tags={}, say=said.append)
    sweep.close(None)
    assert sweep.run.run_id != begun.run.run_id
    assert registry.get_run(begun.run.run_id).info.status == "KILLED"
    (line,) = said
    assert line.startswith("a new run starts: 'other-space' was interrupted")
    assert "but its config differs" in line


def test_the_best_value_goes_on_after_trials_are_tried_again(registry, curve):
    killed = begin("best-again")
    for loss in (7.0, 8.0):
        trial = start(killed, loss)
        failure = TrainingFailedError("no", cause=Cause.USER)
        trial.training.run.record(AttemptRecord(1, Outcome.USER, None, message="no"))
        killed.ended(trial, None, None if loss == 7.0 else failure)
    killed.run.metrics.flush()
    assert curve(killed.run.run_id, "best_loss") == [(1, 7.0)]
    killed.close(KeyboardInterrupt())
    sweep = Sweep.open(Tuner.restore(killed.run.run_id, resume_errored=True).plan, flow_run_id=None, tags={})
    retried = start(sweep, 1.0)
    assert retried.number == 1
    sweep.ended(retried, None, None)
    sweep.close(None)
    assert curve(killed.run.run_id, "best_loss")[-1][1] == 1.0


def test_what_is_restored_with_other_settings_keeps_them(registry):
    begun = begin("more-samples", num_samples=2)
    begun.close(KeyboardInterrupt())
    more = TuneConfig(metric="loss", mode="min", num_samples=4)
    restored = Sweep.open(Tuner.restore("more-samples", tune_config=more).plan, flow_run_id=None, tags={})
    restored.close(KeyboardInterrupt())
    assert Tuner.restore("more-samples").plan.total == 12


def test_a_scheduler_that_cannot_judge_ends_the_sweep():
    sweep = begin("no-time", scheduler=ASHAScheduler(time_attr="epoch"))
    trial = sweep.next_trial(CPUS, 0)
    training = sweep.start(trial, Display())
    verdict = training.report(Report(1, {"loss": 1.0}, None, time.time(), 0.1), fetch=no_fetch)
    assert verdict is Verdict.STOP, "the trial ends"
    assert "epoch" in str(sweep.fatal)
    assert sweep.next_trial(CPUS, 0) is None
    sweep.ended(trial, None, None)
    assert trial.state is TrialState.CANCELLED
    sweep.close(sweep.fatal)
