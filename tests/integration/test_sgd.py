"""RaySGD's trainer beyond what its guide shows: data, logs, retries, failures, tuning, and what it refuses."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
import ray.data

from tests.integration import backends
from trainlib import Checkpoint, TrainingFailedError, session, sgd, tune
from trainlib.callbacks import JsonLoggerCallback
from trainlib.sgd import Trainer


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
        ({"checkpoint": "epoch 3"}, TypeError, "checkpoint is a str: pass a dict, or a trainlib.Checkpoint"),
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


# -- what it does ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_each_backend_is_set_up(backend):
    trainer = Trainer(backend, num_workers=2)
    trainer.start()
    assert trainer.run(backends.of(backend).world_size) == [2, 2]


def reads(config) -> tuple[int, int, int]:
    shard = sgd.get_data_shard()
    rows = sum(len(batch["x"]) for batch in shard.iter_batches(batch_size=config["worker_batch_size"]))
    sgd.report(rows=rows)
    return sgd.world_rank(), sgd.world_size(), rows


def test_a_dataset_is_shared_and_the_log_directory_is_the_one_asked_for(tmp_path):
    trainer = Trainer("torch", num_workers=2, logdir=tmp_path / "logs")
    trainer.start()
    returned = trainer.run(
        reads,
        config={"worker_batch_size": 4},
        dataset=ray.data.range(20).rename_columns({"id": "x"}),
        callbacks=[JsonLoggerCallback()],
    )
    assert returned == [(0, 2, 10), (1, 2, 10)]
    assert trainer.latest_checkpoint is None
    assert trainer.latest_checkpoint_path is None
    assert Path(trainer.latest_run_dir).parent == tmp_path / "logs"
    assert Path(trainer.latest_run_dir, "result.json").exists()


def loses_a_worker_once() -> int:
    import torch.distributed as dist

    start = (sgd.load_checkpoint() or {"epoch": -1})["epoch"] + 1
    for epoch in range(start, 4):
        dist.barrier()
        if epoch == 3 and start == 0:
            if sgd.world_rank() == 1:
                while not Path(session.get_trial_dir(), "checkpoint_000002").exists():
                    time.sleep(0.05)  # until it is kept
                os.kill(os.getpid(), signal.SIGKILL)
            dist.barrier()  # never passed
        sgd.save_checkpoint(epoch=epoch)
        sgd.report(epoch=epoch)
    return start


def test_a_lost_worker_is_retried_from_the_latest_checkpoint():
    trainer = Trainer("torch", num_workers=2)
    trainer.start()
    assert trainer.run(loses_a_worker_once) == [3, 3]
    assert trainer.latest_result.attempts == 2
    assert trainer.latest_checkpoint == {"epoch": 3}


def raises() -> None:
    raise ValueError("a banana")


def test_what_a_rank_raises_is_told_and_the_trainer_can_be_used_again():
    trainer = Trainer("torch")
    trainer.start()
    with pytest.raises(TrainingFailedError, match="a banana") as caught:
        trainer.run(raises, checkpoint={"epoch": 1})
    assert isinstance(caught.value.__cause__, ValueError)
    assert trainer.latest_run_dir is None
    assert trainer.latest_checkpoint == {"epoch": 1}, "what it was given"
    assert trainer.run(lambda: sgd.load_checkpoint(), checkpoint=Checkpoint.from_dict({"epoch": 2})) == [{"epoch": 2}]


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
