"""RaySGD's trainer beyond what its guide shows: data, logs, retries, failures, tuning, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
import ray.data

from tests.integration import backends
from trainlib import Checkpoint, TrainingFailedError, session, sgd, tune
from trainlib.callbacks import JsonLoggerCallback, LoggerCallback
from trainlib.sgd import SGDCallback, Trainer


def nothing() -> None:
    pass


# -- refused ------------------------------------------------------------------------------------------------

NOT_STARTED = """
    import json
    import ray
    from trainlib.sgd import Trainer

    def told(function, *arguments):
        try:
            function(*arguments)
        except Exception as error:
            return str(error)

    trainer = Trainer("torch", num_workers=2)
    messages = [told(trainer.run, print)]
    trainer.shutdown()
    messages += [told(trainer.run, print), told(Trainer, "pytorch"), told(Trainer, "torch", 0)]
    print(json.dumps([messages, ray.is_initialized()]))
"""


def test_run_before_start_and_other_mistakes_start_nothing(driver):
    process = driver(NOT_STARTED, own_ray=True)
    assert process.wait() == 0, process.output
    (before, after, backend, workers), ray_is_running = process.last_json()
    assert before == after
    assert "call start() before run()" in before
    assert "backend is 'pytorch'" in backend
    assert "num_workers is 0" in workers
    assert not ray_is_running


def needs_two(first, second) -> None:
    pass


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"train_func": "train"}, TypeError, "train_func is a str: pass a function"),
        ({"train_func": needs_two}, ValueError, "takes 2 parameters: it is called with none, or with one"),
        ({"config": [1]}, TypeError, "config is a list: pass a dict"),
        ({"checkpoint": [3]}, TypeError, "checkpoint is a list: pass a dict, a trainlib.Checkpoint, or the path"),
        ({"checkpoint": "/epoch 3"}, FileNotFoundError, "no checkpoint at /epoch 3"),
        ({"checkpoint_strategy": 2}, TypeError, "checkpoint_strategy is a int: pass a trainlib.sgd.CheckpointStrategy"),
        ({"dataset": 5}, TypeError, r"datasets\['train'\] is a int: pass a Ray Dataset"),
        (
            {"callbacks": [print]},
            ValueError,
            "is not a callback: pass objects of a class that extends trainlib.callbacks",
        ),
    ],
)
def test_a_run_that_makes_no_sense_is_not_recorded(registry, arguments, error, message):
    def recorded():
        return {
            run.info.run_id for run in registry.search_runs([e.experiment_id for e in registry.search_experiments()])
        }

    before = recorded()
    trainer = Trainer("torch")
    trainer.start()
    with pytest.raises(error, match=message):
        trainer.run(**{"train_func": nothing, **arguments})
    assert recorded() == before
    assert trainer.latest_run_dir is None
    assert list(trainer.logdir.iterdir()) == []


# -- what it does ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_each_backend_is_set_up(backend):
    trainer = Trainer(backend, num_workers=2)
    trainer.start()
    assert trainer.run(backends.of(backend).world_size) == [2, 2]


def reads(config) -> tuple[int, int, int]:
    data_shard = sgd.get_data_shard()
    dataloader = data_shard.to_torch(batch_size=config["worker_batch_size"], label_column="y")
    rows = 0
    for x, y in dataloader:
        assert x.shape[0] == y.shape[0] <= config["worker_batch_size"]
        rows += len(x)
    sgd.report(rows=rows)
    return sgd.world_rank(), sgd.world_size(), rows


def test_a_dataset_is_shared_and_the_log_directory_is_the_one_asked_for(tmp_path):
    table = tmp_path / "table.csv"
    pd.DataFrame({"x": range(24), "y": range(24)}).to_csv(table, index=False)
    trainer = Trainer("torch", num_workers=2, logdir=tmp_path / "logs")
    trainer.start()
    returned = trainer.run(
        reads,
        config={"worker_batch_size": 4},
        dataset=ray.data.read_csv(str(table)).filter(lambda row: row["x"] < 20),
        callbacks=[JsonLoggerCallback()],
    )
    assert returned == [(0, 2, 10), (1, 2, 10)]
    assert trainer.latest_checkpoint is None
    assert trainer.latest_checkpoint_path is None
    assert trainer.latest_run_dir == tmp_path / "logs" / "run_001"
    assert Path(trainer.latest_run_dir, "result.json").exists()
    assert Path(trainer.latest_result.log_dir) == trainer.latest_run_dir


# -- what callbacks and iterators hear --------------------------------------------------------------------------


def reports_by_rank(config) -> str:
    start = (sgd.load_checkpoint() or {"epoch": -1})["epoch"] + 1
    for epoch in range(start, config["num_epochs"]):
        sgd.save_checkpoint(epoch=epoch)
        sgd.report(epoch=epoch, rank=sgd.world_rank())
    return f"rank {sgd.world_rank()}"


def saves_once_and_reports_for_ever() -> None:
    sgd.save_checkpoint(epoch=7)
    while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000001").exists():
        time.sleep(0.05)  # until it is kept
    while True:
        sgd.report(rank=sgd.world_rank())
        time.sleep(0.05)


class Heard(SGDCallback):
    def __init__(self) -> None:
        self.results: list[list[dict]] = []
        self.ended: list[bool] = []

    def handle_result(self, results, **info):
        self.results.append(results)
        if len(self.results) == 2:
            raise LookupError("nothing to see")

    def finish_training(self, error=False, **info):
        self.ended.append(error)


def test_callbacks_hear_all_ranks_and_several_runs_have_folders_of_their_own(monkeypatch, capfd):
    monkeypatch.setenv("SGD_RESULT_ENABLE_DETAILED_AUTOFILLED_METRICS", "1")
    trainer = Trainer("torch", num_workers=2)
    trainer.start()
    heard = Heard()
    callbacks = [heard, sgd.JsonLoggerCallback(workers_to_log=None), sgd.TBXLoggerCallback()]
    assert trainer.run(reports_by_rank, config={"num_epochs": 3}, callbacks=callbacks) == ["rank 0", "rank 1"]

    first = trainer.latest_run_dir
    assert first == trainer.logdir / "run_001"
    assert [[(each["epoch"], each["rank"]) for each in results] for results in heard.results] == [
        [(epoch, 0), (epoch, 1)] for epoch in range(3)
    ]
    assert heard.ended == [False]
    assert [results[1]["_training_iteration"] for results in heard.results] == [1, 2, 3]
    assert len({results[rank]["_pid"] for results in heard.results for rank in (0, 1)}) == 2
    assert "the callback Heard raised LookupError in on_rank_results(): nothing to see" in capfd.readouterr().err
    assert json.loads((first / "results.json").read_text()) == heard.results
    assert list(first.glob("events.out.tfevents.*"))

    assert trainer.latest_checkpoint_dir == first / "checkpoints"
    assert trainer.latest_checkpoint_path == first / "checkpoints" / "checkpoint_000003"
    assert sorted(each.name for each in trainer.latest_checkpoint_dir.glob("checkpoint_*")) == [
        "checkpoint_000001",
        "checkpoint_000002",
        "checkpoint_000003",
    ]

    # A second run on the same trainer, iterated over, from a checkpoint's path, and keeping only one.
    iterator = trainer.run_iterator(
        reports_by_rank,
        config={"num_epochs": 5},
        checkpoint=trainer.latest_checkpoint_path,
        checkpoint_strategy=sgd.CheckpointStrategy(num_to_keep=1),
    )
    with pytest.raises(RuntimeError, match="has not been iterated over to its end"):
        trainer.run(nothing)
    assert [[each["epoch"] for each in results] for results in iterator] == [[3, 3], [4, 4]]
    assert iterator.get_final_results() == ["rank 0", "rank 1"]
    assert trainer.latest_run_dir == trainer.logdir / "run_002"
    assert trainer.latest_checkpoint == {"epoch": 4}
    assert trainer.latest_checkpoint_path.parent == trainer.logdir / "run_002" / "checkpoints"
    assert len(list(trainer.latest_checkpoint_dir.glob("checkpoint_*"))) == 1

    # A third one that would never end: shutdown() ends it.
    iterator = trainer.run_iterator(saves_once_and_reports_for_ever)
    assert [each["rank"] for each in next(iterator)] == [0, 1]
    assert trainer.latest_checkpoint == {"epoch": 7}, "while it goes on"
    assert trainer.latest_checkpoint_path == trainer.logdir / "run_003" / "checkpoints" / "checkpoint_000001"
    trainer.shutdown()
    list(iterator)
    assert iterator.is_finished()
    assert trainer.latest_run_dir == trainer.logdir / "run_003"


def loses_a_worker_once() -> int:
    import torch.distributed as dist

    start = (sgd.load_checkpoint() or {"epoch": -1})["epoch"] + 1
    for epoch in range(start, 4):
        dist.barrier()
        if epoch == 3 and start == 0:
            if sgd.world_rank() == 1:
                while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000003").exists():
                    time.sleep(0.05)  # until it is kept
                os.kill(os.getpid(), signal.SIGKILL)
            dist.barrier()  # never passed
        sgd.save_checkpoint(epoch=epoch)
        sgd.report(epoch=epoch)
    return start


class Restores(LoggerCallback):
    """What it is called with when a training starts, is tried again, and ends."""

    def __init__(self) -> None:
        self.calls: list = []

    def log_trial_start(self, trial):
        self.calls.append("start")

    def log_trial_restore(self, trial):
        self.calls.append(("restore", {"epoch": trial.checkpoint.to_dict()["epoch"]}))

    def log_trial_end(self, trial, failed=False):
        self.calls.append(("end", failed, {"epoch": trial.checkpoint.to_dict()["epoch"]}))


def test_a_lost_worker_is_retried_from_the_latest_checkpoint():
    trainer = Trainer("torch", num_workers=2, max_retries=1)
    trainer.start()
    restores = Restores()
    assert trainer.run(loses_a_worker_once, callbacks=[restores]) == [3, 3]
    assert restores.calls == ["start", ("restore", {"epoch": 2}), ("end", False, {"epoch": 3})]
    assert trainer.latest_result.attempts == 2
    assert trainer.latest_result.resumed_at == [2], "which plots mark"
    assert trainer.latest_checkpoint == {"epoch": 3}


def raises(config) -> None:
    with open(config["calls"], "a") as calls:
        calls.write("called\n")
    raise ValueError("a banana")


def saves_in_memory() -> dict:
    given = sgd.load_checkpoint()
    sgd.save_checkpoint(epoch=3)
    sgd.report(loss=1.0)
    return given


def test_what_a_rank_raises_is_told_once_and_the_trainer_can_be_used_again(tmp_path):
    trainer = Trainer("torch")
    trainer.start()
    with pytest.raises(TrainingFailedError, match="a banana") as caught:
        trainer.run(raises, config={"calls": str(tmp_path / "calls")}, checkpoint={"epoch": 1})
    assert isinstance(caught.value.__cause__, ValueError)
    assert (tmp_path / "calls").read_text() == "called\n", "only lost workers are retried"
    assert trainer.latest_run_dir == trainer.logdir / "run_001", "its logs are there although it failed"
    assert trainer.latest_checkpoint == {"epoch": 1}, "what it was given"

    # A second run that keeps its checkpoints in memory.
    assert trainer.run(
        saves_in_memory,
        checkpoint=Checkpoint.from_dict({"epoch": 2}),
        checkpoint_strategy=sgd.CheckpointStrategy(num_to_keep=0),
    ) == [{"epoch": 2}]
    assert trainer.latest_run_dir == trainer.logdir / "run_002"
    assert trainer.latest_checkpoint == {"epoch": 3}
    assert trainer.latest_checkpoint_path is trainer.latest_checkpoint_dir is None
    assert not list(trainer.logdir.rglob("*checkpoint*")), "nothing of it is on disk"


def test_a_tuner_takes_the_space_of_the_config_and_the_dataset():
    def training_func(config):
        batches = sgd.get_dataset_shard().iter_batches(batch_size=config["batch_size"])
        sgd.report(batches=sum(1 for _ in batches), score=config["lr"])

    trainable = Trainer("torch", num_workers=2).to_tune_trainable(training_func, dataset=pd.DataFrame({"x": range(16)}))
    tuner = tune.Tuner(
        trainable,
        param_space={"lr": tune.uniform(0.1, 0.2), "batch_size": tune.grid_search([2, 4])},
        tune_config=tune.TuneConfig(metric="score", mode="max"),
    )
    results = tuner.fit()
    assert [result.metrics["batches"] for result in results] == [4, 2]
    assert results.get_best_result().config.keys() == {"lr", "batch_size"}

    again = tune.Tuner.restore(results)
    assert len(again.get_results()) == 2
    assert again.plan.trainable.trainers[0].scaling_config.num_workers == 2
