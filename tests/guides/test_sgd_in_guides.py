"""The RaySGD guide: quick start, configurations, log directory structure, saving and loading checkpoints."""

from pathlib import Path

import torch


def test_a_function_for_torch_distributed_gives_the_losses_of_each_rank(run_example):
    all_results = run_example("sgd_quick_start").names["all_results"]
    assert [len(losses) for losses in all_results] == [10, 10]
    assert all_results[0] != all_results[1], "each rank has made its own data"
    assert torch.tensor(all_results).isfinite().all()


def test_run_gives_what_each_rank_returned_and_can_be_called_again(run_example):
    ran = run_example("sgd_configurations")
    assert ran.lines == ["[[0, 1], [0, 1]]", "[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]"]


def test_the_latest_checkpoint_is_what_was_saved_last(run_example):
    ran = run_example("sgd_saving_checkpoints")
    assert ran.lines == ["{'epoch': 4, 'model': 10}"]
    trainer = ran.names["trainer"]
    assert Path(trainer.latest_checkpoint_path).is_dir()
    assert Path(trainer.latest_run_dir).is_dir()
    assert Path(trainer.latest_run_dir).parent == Path(trainer.logdir)


def test_a_run_goes_on_from_the_checkpoint_it_is_given(run_example):
    ran = run_example("sgd_loading_checkpoints")
    assert ran.lines == ["{'epoch': 4, 'model': 10}"]
    saved = [checkpoint.to_dict()["epoch"] for checkpoint, _ in ran.names["trainer"].latest_result.best_checkpoints]
    assert saved == [3, 4], "epochs 0 to 2 are not done again"
