"""The RaySGD guide: quick start, configurations, metrics, callbacks, log directories, saving and loading checkpoints."""

import ast
from pathlib import Path

import torch


def test_a_function_for_torch_distributed_gives_the_losses_of_each_rank(run_example):
    ran = run_example("sgd_quick_start")
    assert ran.lines == [str(ran.names["results"])]
    assert [tuple(output.shape) for output in ran.names["results"]] == [(1, 1), (1, 1)]
    all_results = ran.names["all_results"]
    assert [len(losses) for losses in all_results] == [10, 10]
    assert all_results[0] != all_results[1], "each rank has made its own data"
    assert torch.tensor(all_results).isfinite().all()


def test_run_gives_what_each_rank_returned_and_can_be_called_again(run_example):
    ran = run_example("sgd_configurations")
    assert ran.lines == ["[[0, 1], [0, 1]]", "[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]", "['no config', 'no config']"]
    assert ran.result.returned == [{}, {}]


AUTOFILLED = {"_timestamp", "_time_this_iter_s", "_training_iteration"}


def test_a_callback_gets_the_results_of_all_ranks(run_example):
    printed = [ast.literal_eval(line) for line in run_example("sgd_callbacks").lines]
    assert [[rank["epoch"] for rank in results] for results in printed] == [[0, 0], [1, 1], [2, 2]]
    assert [[rank["_training_iteration"] for rank in results] for results in printed] == [[1, 1], [2, 2], [3, 3]]
    assert all(rank.keys() == {"epoch", *AUTOFILLED} for results in printed for rank in results)


def test_torchmetrics_of_all_ranks_reach_a_callback(run_example):
    (results,) = [ast.literal_eval(line) for line in run_example("sgd_distributed_metrics").lines]
    assert [round(rank["accuracy"] * 10, 6) in range(11) for rank in results] == [True, True]
    assert all(rank.keys() == {"accuracy", *AUTOFILLED} for rank in results)


def test_the_latest_checkpoint_is_what_was_saved_last_and_lies_in_the_run_s_directory(run_example):
    ran = run_example("sgd_saving_checkpoints")
    trainer = ran.names["trainer"]
    folder = Path(trainer.logdir, "run_001", "checkpoints")
    assert ran.lines == ["{'epoch': 4, 'model': 10}", str(folder), str(folder / "checkpoint_000005")]
    assert (folder / "checkpoint_000005").is_dir()
    assert Path(trainer.latest_run_dir) == folder.parent
    assert Path(trainer.logdir).name.startswith("sgd_")


def test_a_run_goes_on_from_the_checkpoint_it_is_given(run_example):
    ran = run_example("sgd_loading_checkpoints")
    assert ran.lines == ["{'epoch': 4, 'model': 10}"]
    saved = [checkpoint.to_dict()["epoch"] for checkpoint, _ in ran.result.best_checkpoints]
    assert saved == [3, 4], "epochs 0 to 2 are not done again"
