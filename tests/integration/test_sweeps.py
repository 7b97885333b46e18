"""What a sweep does: its trials, their runs in both UIs, and what comes out."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from urllib.parse import quote

import pandas as pd
import pytest

from tests.integration.leftovers import assert_nothing_left_behind
from tests.integration.shown_sweeps import artifacts_of, children, task_runs
from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    RunConfig,
    ScalingConfig,
    session,
    tune,
)
from trainlib.callbacks import Callback
from trainlib.torch import TorchTrainer
from trainlib.tune import ASHAScheduler, PopulationBasedTraining, TimeoutStopper, TuneConfig, Tuner

QUIET = RunConfig(verbose=0)


def squared(config):
    return {"loss": config["x"] ** 2}


def test_a_grid_times_the_samples_with_a_child_run_for_each_trial(registry, flow_state):
    results = Tuner(
        squared,
        param_space={"x": tune.grid_search([1, 2, 3]), "model": {"width": tune.choice([8, 16])}},
        tune_config=TuneConfig(num_samples=2, metric="loss", mode="min"),
        run_config=QUIET,
    ).fit()

    assert len(results) == 6
    assert [result.config["x"] for result in results] == [1, 2, 3, 1, 2, 3]
    assert results.get_best_result().metrics["loss"] == 1
    assert results.num_errors == 0
    assert results.num_terminated == 6
    frame = results.get_dataframe()
    assert frame["config/x"].tolist() == [1, 2, 3, 1, 2, 3]
    assert set(frame["config/model/width"]) <= {8, 16}

    runs = children(registry, results.run_id)
    assert [run.data.params["x"] for run in runs] == ["1", "2", "3", "1", "2", "3"]
    assert all(run.data.params["model.width"] in ("8", "16") for run in runs)
    assert [run.data.metrics["loss"] for run in runs] == [1, 4, 9, 1, 4, 9]
    assert {run.info.status for run in runs} == {"FINISHED"}
    parent = registry.get_run(results.run_id)
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["best_loss"] == 1
    plots = {file.path for file in registry.list_artifacts(results.run_id, "plots")}
    assert plots == {f"plots/{n}.png" for n in ("optimization_history", "parallel_coordinates", "param_importances")}

    assert all("model.width-2" not in run.data.params for run in runs)
    assert [run.info.run_name[:13] for run in runs] == [f"trial {n} · x={x}" for n, x in enumerate([1, 2, 3, 1, 2, 3])]
    assert parent.info.run_name.startswith("sweep · squared over x, width · 20")
    note = parent.data.tags["mlflow.note.content"]
    assert f"/runs/flow-run/{results.flow_run_id})" in note
    assert all(f"(#/experiments/{parent.info.experiment_id}/runs/{run.info.run_id}?" in note for run in runs)
    assert all(f"(get-artifact?path={quote(plot, safe='')}&run_uuid={results.run_id})" in note for plot in plots)
    table = f"#/experiments/{parent.info.experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={results.run_id}"
    assert results.trials_url.endswith(table)
    assert all(table in text for text in [note, *(run.data.tags["mlflow.note.content"] for run in runs)])
    shared = registry.get_experiment(parent.info.experiment_id).tags[f"mlflow.sharedViewState.{results.run_id}"]
    assert json.loads(shared)["selectedColumns"] == ["metrics.`loss`", "params.`x`", "params.`model.width`"]
    found = registry.search_runs([parent.info.experiment_id], json.loads(shared)["searchFilter"])
    assert {run.info.run_id for run in found} == {run.info.run_id for run in runs}

    assert flow_state(results.flow_run_id) == "COMPLETED"
    names = [run.name for run in task_runs(results.flow_run_id)]
    assert len(names) == 6
    assert any(name.startswith("trial 1 · x=2 model.width=") for name in names), names
    assert_nothing_left_behind()


def test_prefect_shows_a_table_and_a_summary_with_plots():
    results = Tuner(
        squared,
        param_space={"x": tune.grid_search([1, 2])},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=QUIET,
    ).fit()
    artifacts = artifacts_of(results.flow_run_id)
    assert json.loads(artifacts["trials"])[0] == {
        "trial": "0 ★",
        "state": "terminated",
        "iteration": "1",
        "x": "1",
        "loss": "1",
    }
    assert "best: trial 0 · x=1 · loss 1 · http" in artifacts["sweep-summary"]
    assert artifacts["sweep-summary"].count("data:image/png;base64,") == 3
    assert results.trials_url in artifacts["mlflow-run"]
    assert f"sweep: {results.trials_url}" in artifacts["sweep-summary"]


def test_settings_of_a_trainer_are_reached_and_the_trainer_stays_as_it_was(registry):
    def train_func(config):
        session.report({"workers": session.get_world_size(), "lr": config["optimizer"]["lr"], "kept": config["kept"]})

    trainer = TorchTrainer(
        train_func,
        train_loop_config={"optimizer": {"lr": 0.1, "name": "sgd"}, "kept": 7},
        scaling_config=ScalingConfig(num_workers=1),
        run_config=QUIET,
    )
    before = {name: repr(value) for name, value in trainer.arguments().items()}
    results = Tuner(
        trainer,
        param_space={
            "train_loop_config": {"optimizer": {"lr": tune.grid_search([0.1, 0.2])}},
            "scaling_config": {"num_workers": tune.grid_search([1, 2])},
            "run_config": {"checkpoint_config": {"num_to_keep": 1}},
        },
    ).fit()

    assert [(r.metrics["lr"], r.metrics["workers"]) for r in results] == [(0.1, 1), (0.1, 2), (0.2, 1), (0.2, 2)]
    assert all(result.metrics["kept"] == 7 for result in results)
    assert results[1].config["scaling_config"] == {"num_workers": 2}
    assert {name: repr(value) for name, value in trainer.arguments().items()} == before
    params = children(registry, results.run_id)[3].data.params
    assert (params["optimizer.lr"], params["num_workers"], params["optimizer.name"]) == ("0.2", "2", "sgd")


def test_datasets_can_be_tried_and_a_sweep_over_them_restored():
    def train_func(config):
        batches = session.get_dataset_shard("train").iter_batches(batch_size=4)
        session.report({"rows": sum(len(batch["x"]) for batch in batches)})

    small, large = (pd.DataFrame({"x": range(rows)}) for rows in (8, 20))
    name = f"over-data-{os.getpid()}"
    results = Tuner(
        DataParallelTrainer(train_func, scaling_config=ScalingConfig(num_workers=2), datasets={"train": small}),
        param_space={"datasets": {"train": tune.grid_search([small, large])}},
        run_config=RunConfig(verbose=0, name=name),
    ).fit()
    assert [result.metrics["rows"] for result in results] == [4, 10]
    restored = Tuner.restore(name).get_results()
    assert [result.metrics["rows"] for result in restored] == [4, 10]
    assert restored[1].run_id == results[1].run_id


def test_trainers_of_different_kinds_stand_in_one_sweep():
    def with_torch(config):
        import torch.distributed

        session.report({"loss": config["x"], "group": int(torch.distributed.is_initialized())})

    def plain(config):
        session.report({"loss": 10 * config["x"], "group": 0})

    results = Tuner(
        tune.grid_search([TorchTrainer(with_torch), DataParallelTrainer(plain)]),
        param_space={"train_loop_config": {"x": tune.grid_search([1, 2])}},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=QUIET,
    ).fit()
    assert [(r.config["trainer"], r.metrics["loss"], r.metrics["group"]) for r in results] == [
        ("TorchTrainer", 1, 1),
        ("TorchTrainer", 2, 1),
        ("DataParallelTrainer", 10, 0),
        ("DataParallelTrainer", 20, 0),
    ]


def test_the_last_value_of_the_metric_counts_even_if_other_reports_follow():
    def train_func(config):
        session.report({"loss": config["x"]})
        session.report({"epoch_time": 1.0})

    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([3, 1, 2])},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=QUIET,
    ).fit()
    assert results.get_best_result().config == {"x": 1}
    assert results.get_best_result(scope="all").config == {"x": 1}


def test_asha_stops_the_worse_ones_early_and_that_is_no_failure(registry):
    def train_func(config):
        for epoch in range(9):
            session.report({"accuracy": config["quality"] * (epoch + 1), "epoch": epoch})

    results = Tuner(
        TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)),
        param_space={"train_loop_config": {"quality": tune.grid_search([3, 1, 2, 4])}},
        tune_config=TuneConfig(
            metric="accuracy", mode="max", scheduler=ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3)
        ),
        run_config=QUIET,
    ).fit()
    assert results.num_errors == 0
    assert [result.metrics["training_iteration"] for result in results] == [9, 1, 1, 9]
    assert results.get_best_result().config == {"train_loop_config": {"quality": 4}}
    runs = children(registry, results.run_id)
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert '"outcome": "stopped"' in runs[1].data.tags["trainlib.attempt.001"]
    assert {run.state_name for run in task_runs(results.flow_run_id)} == {"Completed"}
    pids = {result.metrics["pid"] for result in results}
    assert len(pids) <= 2, "workers of a trial that was stopped early are handed on, not replaced"


def test_a_free_slot_is_filled_at_once(tmp_path):
    def train_func(config):
        started = time.time()
        time.sleep(3.0 if config["x"] == 0 else 0.3)
        session.report({"started": started, "ended": time.time()})

    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1, 2, 3])},
        tune_config=TuneConfig(max_concurrent_trials=2),
        run_config=QUIET,
    ).fit()
    slow, *quick = results
    assert all(result.metrics["started"] < slow.metrics["ended"] for result in quick), "none waited for the slow one"


def test_no_more_at_once_than_asked_for(tmp_path):
    def train_func(config):
        running = config["folder"] / str(config["x"])
        running.touch()
        session.report({"at_once": len(list(config["folder"].iterdir()))})
        time.sleep(0.2)
        running.unlink()

    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1, 2, 3]), "folder": tmp_path},
        tune_config=TuneConfig(max_concurrent_trials=1),
        run_config=QUIET,
    ).fit()
    assert [result.metrics["at_once"] for result in results] == [1, 1, 1, 1]


def test_a_time_budget_ends_a_sweep_without_an_end():
    def train_func(config):
        for epoch in range(1000):
            session.report({"loss": config["x"], "epoch": epoch})
            time.sleep(0.1)

    started = time.monotonic()
    results = Tuner(
        train_func,
        param_space={"x": tune.uniform(0, 1)},
        tune_config=TuneConfig(num_samples=-1, time_budget_s=4, metric="loss", mode="min"),
        run_config=RunConfig(verbose=0, stop={"training_iteration": 5}),
    ).fit()
    assert time.monotonic() - started < 30
    assert len(results) >= 2
    assert results.num_errors == 0
    assert max(result.metrics["training_iteration"] for result in results) == 5
    assert_nothing_left_behind()


@pytest.mark.usefixtures("short_grace")
def test_a_stopper_ends_a_sweep_whose_trials_do_not_report():
    def train_func(config):
        session.report({"loss": config["x"]})
        time.sleep(600)

    started = time.monotonic()
    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([1, 2, 3])},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=RunConfig(verbose=0, stop=TimeoutStopper(2)),
    ).fit()
    assert time.monotonic() - started < 30
    assert {result.metrics["loss"] for result in results} <= {1, 2, 3}
    assert results.num_errors == 0
    assert_nothing_left_behind()


def test_a_population_takes_over_weights_and_tries_other_params(registry, curve):
    def train_func(config):
        checkpoint = session.get_checkpoint()
        weight = checkpoint.to_dict()["weight"] if checkpoint else 0.0
        while True:
            weight += config["gain"]
            session.report({"weight": weight}, checkpoint=Checkpoint.from_dict({"weight": weight}))

    results = Tuner(
        train_func,
        param_space={"gain": tune.grid_search([0.001, 1.0, 2.0, 3.0])},
        tune_config=TuneConfig(
            metric="weight",
            mode="max",
            scheduler=PopulationBasedTraining(
                time_attr="training_iteration",
                perturbation_interval=3,
                hyperparam_mutations={"gain": tune.uniform(1.0, 3.0)},
                resample_probability=0.0,
                seed=1,
            ),
        ),
        run_config=RunConfig(
            verbose=0, stop={"training_iteration": 9}, checkpoint_config=CheckpointConfig(num_to_keep=1)
        ),
    ).fit()
    assert results.num_errors == 0
    assert [result.metrics["training_iteration"] for result in results] == [9, 9, 9, 9]
    worst = results[0]
    assert worst.config["gain"] > 0.5, "it has taken over the params of a better one, changed"
    assert worst.metrics["weight"] > 1, "and its weights"
    assert [step for step, _ in curve(worst.run_id, "weight")] == list(range(1, 10)), "one clean curve"
    assert curve(worst.run_id, "config.gain"), "what was changed can be seen"
    assert_nothing_left_behind()


def test_the_sampler_learns():
    results = Tuner(
        squared,
        param_space={"x": tune.uniform(-10, 10)},
        tune_config=TuneConfig(num_samples=24, metric="loss", mode="min", search_alg="tpe", seed=3),
        run_config=QUIET,
    ).fit()
    losses = [result.metrics["loss"] for result in results]
    assert min(losses[12:]) < min(losses[:12]) or min(losses) < 1
    assert sum(losses[12:]) < sum(losses[:12])


def test_a_callback_sees_all_trials_of_a_sweep_and_the_terminal_what_they_print(capfd):
    def train_func(config):
        print(f"x is {config['x']}")
        session.report({"loss": config["x"] ** 2, "val": {"loss": config["x"] ** 2, "phase": "over"}})

    class Seen(Callback):
        def __init__(self):
            self.events = []
            self.threads = set()
            self.ids = set()

        def setup(self, **info):
            self.events.append(("setup", info["total_num_samples"]))

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.threads.add(threading.current_thread().name)
            self.events.append(("result", result["loss"]))
            self.ids.add((result["trial_id"], result["experiment_id"], result["experiment_tag"]))

        def on_trial_complete(self, iteration, trials, trial, **info):
            self.events.append(("complete", trial.config["x"]))

        def on_experiment_end(self, trials, **info):
            self.events.append(("end", len(trials)))

    seen = Seen()
    results = Tuner(
        train_func,
        param_space={"x": tune.grid_search([1, 2, 3])},
        tune_config=TuneConfig(metric="val/loss", mode="min"),
        run_config=RunConfig(verbose=0, callbacks=[seen]),
    ).fit()
    printed = capfd.readouterr().out.splitlines()
    assert sorted(printed) == [f"[trial {number} rank 0] x is {number + 1}" for number in range(3)]
    best = results.get_best_result()
    assert (best.config, best.metrics["val"]) == ({"x": 1}, {"loss": 1, "phase": "over"})
    first = results.run_id[:5]
    assert seen.ids == {(f"{first}_{n:05d}", result.run_id, str(n)) for n, result in enumerate(results)}
    assert seen.events[0] == ("setup", 3)
    assert seen.events[-1] == ("end", 3)
    assert sorted(value for kind, value in seen.events if kind == "result") == [1, 4, 9]
    assert sorted(value for kind, value in seen.events if kind == "complete") == [1, 2, 3]


def test_the_same_seed_chooses_the_same(registry):
    def chosen():
        space = {"x": tune.uniform(0, 1), "n": tune.lograndint(1, 1000), "z": tune.randn(10, 2)}
        config = TuneConfig(
            num_samples=3, seed=5, max_concurrent_trials=1, trial_name_creator=lambda t: f"own-{t.number}"
        )
        results = Tuner(
            lambda config: {"loss": config["x"]}, param_space=space, tune_config=config, run_config=QUIET
        ).fit()
        assert [run.info.run_name for run in children(registry, results.run_id)] == ["own-0", "own-1", "own-2"]
        return [result.config for result in results]

    random.seed()
    assert chosen() == chosen()


def test_a_stopper_can_end_the_whole_sweep():
    results = Tuner(
        lambda config: {"loss": 0.5},
        param_space={"x": tune.uniform(0, 1)},
        tune_config=TuneConfig(num_samples=40, metric="loss", mode="min"),
        run_config=RunConfig(verbose=0, stop=tune.ExperimentPlateauStopper("loss", std=0.01, top=3, mode="min")),
    ).fit()
    assert 3 <= len(results) < 10
    assert results.num_errors == 0
