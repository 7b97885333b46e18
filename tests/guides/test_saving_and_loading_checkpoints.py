"""Guide sections: saving, configuring and loading checkpoints."""

import ast
import time
from pathlib import Path

import torch
from mlflow import MlflowClient

from trainlib import Checkpoint
from trainlib._registry.store import current_store


def test_the_last_checkpoint_is_the_dict_that_was_saved_and_what_the_guide_adds(example):
    ran = example("saving_checkpoints")
    saved = ran.result.checkpoint.to_dict()

    assert list(saved) == ["epoch", "model_weights", "_timestamp", "_preprocessor", "_current_checkpoint_id"]
    assert saved["epoch"] == 4
    assert saved["_current_checkpoint_id"] == 4
    assert saved["_preprocessor"] is None
    assert ran.started <= saved["_timestamp"] <= time.time()
    assert {name: tuple(value.shape) for name, value in saved["model_weights"].items()} == {
        "weight": (1, 4),
        "bias": (1,),
    }
    assert ran.lines[0] == str(saved)
    assert ran.lines[0].startswith("{'epoch': 4, 'model_weights': OrderedDict(")
    model = torch.nn.Linear(4, 1)
    model.load_state_dict(saved["model_weights"])
    assert model(torch.ones(1, 4)).shape == (1, 1), "a process that has loaded it answers row by row"


def test_a_checkpoint_is_a_local_directory_with_its_number(example):
    ran = example("saving_checkpoints")
    kind, path = ast.literal_eval(ran.lines[1])
    assert kind == "local_path"
    assert Path(path).name == "checkpoint_000004"
    assert Path(path).is_dir()
    assert (ran.result.log_dir / "checkpoints" / "checkpoint_000004").resolve() == Path(path)


def test_the_result_has_the_last_and_the_best_checkpoints(example):
    result = example("saving_checkpoints").result
    assert isinstance(result.checkpoint, Checkpoint)
    assert [checkpoint.to_dict()["epoch"] for checkpoint, _ in result.best_checkpoints] == [0, 1, 2, 3, 4]


def test_metrics_of_all_workers_and_checkpoints_are_kept_where_the_run_config_says(run_example, tmp_path):
    """Guide 003 includes ``report_metrics_and_save_checkpoints.py``."""
    result = run_example("report_metrics_and_save_checkpoints", STORAGE=str(tmp_path)).result
    assert result.metrics_dataframe["mean_loss"].tolist() == [0.5, 1.5, 2.5]
    assert result.checkpoint.to_dict()["step"] == 2
    assert Path(result.checkpoint.path).is_relative_to(tmp_path)


def test_num_to_keep_0_writes_no_checkpoint(run_example, example, home):
    def checkpoints():
        client = MlflowClient(current_store().uri)
        experiments = [found.experiment_id for found in client.search_experiments()]
        return {path for path in home.rglob("*") if "checkpoint" in path.name}, {
            model.model_id for model in client.search_logged_models(experiments, max_results=1000)
        }

    example("saving_checkpoints")  # which writes some, to check that they would be found
    before = checkpoints()
    assert all(before)
    run_example("keeping_no_checkpoints")
    assert checkpoints() == before


def test_the_n_best_checkpoints_by_a_score_in_their_dict_are_kept(run_example):
    ran = run_example("keeping_the_best_checkpoints")
    printed = [ast.literal_eval(line) for line in ran.lines]

    assert [kind for kind, _ in printed] == ["local_path", "local_path"]
    assert [Path(path).name for _, path in printed] == ["checkpoint_000000", "checkpoint_000002"]
    assert [checkpoint.to_dict()["loss"] for checkpoint, _ in ran.result.best_checkpoints] == [2, 1]
    assert len(ran.result.best_checkpoints) == 2


def test_training_goes_on_from_the_checkpoint_it_is_given(run_example):
    ran = run_example("loading_checkpoints")
    saved = ran.result.checkpoint.to_dict()

    assert saved["epoch"] == 3
    assert saved["_current_checkpoint_id"] == 2
    assert saved.keys() == {"epoch", "model_weights", "_timestamp", "_preprocessor", "_current_checkpoint_id"}
    assert ran.lines == [str(saved)]
    assert ran.result.metrics["training_iteration"] == 2
    first = ran.names["trainer"].resume_from_checkpoint.to_dict()
    assert first["epoch"] == 1
    assert not torch.equal(first["model_weights"]["weight"], saved["model_weights"]["weight"])
    # A step of Adam moves a weight by little more than the learning rate, so it resumed from the saved weights.
    torch.testing.assert_close(saved["model_weights"], first["model_weights"], rtol=0, atol=1e-3)
