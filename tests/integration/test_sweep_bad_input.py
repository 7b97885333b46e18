"""A sweep that makes no sense is refused as early as it can be known, with words that help."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from trainlib import CheckpointConfig, DataParallelTrainer, RunConfig, ScalingConfig, session, tune
from trainlib.errors import CapacityError, CheckpointsNeededError, MetricNotReportedError, RunNotFoundError
from trainlib.tune import ASHAScheduler, PopulationBasedTraining, TuneConfig, Tuner

QUIET = RunConfig(verbose=0)


def quick(config):
    session.report({"loss": 1.0})


def test_no_metric_to_compare_by():
    with pytest.raises(ValueError, match=r"AsyncHyperBandScheduler compares trials.*set metric and mode"):
        Tuner(quick, tune_config=TuneConfig(scheduler=ASHAScheduler())).fit()
    with pytest.raises(ValueError, match="search_alg='tpe' learns from a metric, but none is set"):
        TuneConfig(search_alg="tpe")
    results = Tuner(quick, run_config=QUIET).fit()
    with pytest.raises(ValueError, match="there is no metric and mode to compare by"):
        results.get_best_result()
    with pytest.raises(ValueError, match=r"no trial reported a finite 'accuracy'\. They reported .*loss"):
        results.get_best_result("accuracy", "max")


def test_a_function_that_reports_nothing_at_all_ends_the_sweep_after_the_first_trial():
    with pytest.raises(
        MetricNotReportedError, match="the sweep optimises 'loss', but the training function reports nothing"
    ):
        Tuner(
            lambda config: None,
            param_space={"x": tune.uniform(0, 1)},
            tune_config=TuneConfig(metric="loss", mode="min", num_samples=50, max_concurrent_trials=1),
            run_config=RunConfig(verbose=0),
        ).fit()


def test_a_metric_that_no_trial_reports_ends_the_sweep_after_the_first_report(registry):
    def slow(config):
        for _ in range(100):
            session.report({"loss": 1.0})
            time.sleep(1)

    started = time.monotonic()
    with pytest.raises(
        MetricNotReportedError, match="the sweep optimises 'accuracy', but the training function reports loss: report"
    ):
        Tuner(
            slow,
            tune_config=TuneConfig(num_samples=5, metric="accuracy", mode="max"),
            run_config=RunConfig(verbose=0, name="never-reported"),
        ).fit()
    assert time.monotonic() - started < 40
    experiments = [found.experiment_id for found in registry.search_experiments()]
    (run,) = registry.search_runs(experiments, "attributes.run_name = 'never-reported'")
    assert run.info.status == "FAILED"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metric": "loss"}, "metric is 'loss', but mode is missing: set mode='max' or mode='min'"),
        ({"metric": "loss", "mode": "minimum"}, "mode is 'minimum': use 'max' if"),
        ({"mode": "min"}, "mode is 'min', but metric is missing"),
        ({"num_samples": 0}, "num_samples is 0: set it to 1 or more"),
        ({"num_samples": -1}, "the sweep would never end"),
        ({"time_budget_s": 0}, "time_budget_s is 0, so no trial could run"),
        ({"max_concurrent_trials": 0}, "max_concurrent_trials is 0"),
        ({"search_alg": "magic"}, "search_alg is 'magic': use random, tpe, cmaes, gp, or an Optuna sampler"),
        ({"scheduler": "magic"}, "scheduler is 'magic': use fifo, asha, hyperband, median"),
        ({"metrics": "loss"}, "metrics"),
    ],
)
def test_settings_that_make_no_sense(wrong, words):
    with pytest.raises(ValueError, match=words):
        TuneConfig(**wrong)


def test_an_empty_or_an_infinite_grid():
    with pytest.raises(ValueError, match=r"param_space\['train_loop_config'\]\['x'\]: grid_search\(\) got no values"):
        Tuner(quick, param_space={"x": tune.grid_search([])}).fit()
    with pytest.raises(ValueError, match=r"grid_search\(\) got a count, which may never end: pass a list"):
        tune.grid_search(itertools.count())
    with pytest.raises(ValueError, match=r"a grid_search inside another choice"):
        Tuner(quick, param_space={"x": tune.choice([{"y": tune.grid_search([1])}])}).fit()


def test_a_value_that_cannot_be_sent_to_workers_is_named():
    with pytest.raises(ValueError, match=r"param_space\['train_loop_config'\]\['model'\]\['lock'\] has a lock that"):
        Tuner(quick, param_space={"model": {"lock": threading.Lock(), "lr": tune.uniform(0, 1)}}).fit()


def test_a_setting_that_the_trainer_does_not_have():
    with pytest.raises(ValueError, match=r"param_space has 'lr', but DataParallelTrainer has no such setting"):
        Tuner(DataParallelTrainer(quick), param_space={"lr": tune.uniform(0, 1)}).fit()


def test_a_scheduler_that_needs_checkpoints_from_a_function_that_saves_none():
    def endless(config):
        while True:
            session.report({"loss": config["x"]})

    scheduler = PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=2, hyperparam_mutations={"x": [1, 2, 3, 4]}
    )
    config = TuneConfig(metric="loss", mode="min", scheduler=scheduler)
    space = {"x": tune.grid_search([1, 2, 3, 4])}
    started = time.monotonic()
    with pytest.raises(CheckpointsNeededError, match=r"trial \d has saved none by iteration 2: pass one to report"):
        Tuner(endless, param_space=space, tune_config=config, run_config=QUIET).fit()
    assert time.monotonic() - started < 40
    with pytest.raises(ValueError, match=r"CheckpointConfig\(num_to_keep=0\) keeps none"):
        Tuner(
            endless,
            param_space=space,
            tune_config=config,
            run_config=RunConfig(checkpoint_config=CheckpointConfig(num_to_keep=0)),
        ).fit()
    with pytest.raises(ValueError, match=r"hyperparam_mutations\['x'\] is not in param_space"):
        Tuner(endless, param_space={"y": 1}, tune_config=config).fit()


def test_a_concurrency_that_does_not_fit_the_cluster():
    with pytest.raises(
        CapacityError,
        match=r"max_concurrent_trials is 50, and each trial takes 2 CPU.*The cluster has \d+\. Lower it to \d",
    ):
        Tuner(
            DataParallelTrainer(quick, scaling_config=ScalingConfig(num_workers=2)),
            tune_config=TuneConfig(num_samples=50, max_concurrent_trials=50),
            run_config=QUIET,
        ).fit()


def test_what_is_no_trainable():
    with pytest.raises(TypeError, match="a Tuner got 7: pass a trainer, or a training function"):
        Tuner(7)
    with pytest.raises(TypeError, match=r"takes tune.choice\(\[...\]\) or tune.grid_search"):
        Tuner(tune.uniform(0, 1))
    with pytest.raises(ValueError, match="the trainer's train_loop_config has a search space in it"):
        Tuner(DataParallelTrainer(quick, train_loop_config={"lr": tune.uniform(0, 1)}))
    with pytest.raises(RunNotFoundError, match="no training named 'nobody'"):
        Tuner.restore("nobody")
