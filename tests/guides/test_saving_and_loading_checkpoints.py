"""Guide sections: saving, configuring and loading checkpoints."""

import ast
import time
from pathlib import Path

import torch
from mlflow import MlflowClient

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
    torch.nn.Linear(4, 1).load_state_dict(saved["model_weights"])


def test_a_checkpoint_is_a_local_directory_with_its_number(example):
    kind, path = ast.literal_eval(example("saving_checkpoints").lines[1])
    assert kind == "local_path"
    assert Path(path).name == "checkpoint_000004"
    assert Path(path).is_dir()


def test_num_to_keep_0_writes_no_checkpoint(run_example, example, home):
    def checkpoints():
        client = MlflowClient(current_store().uri)
        experiments = [found.experiment_id for found in client.search_experiments()]
        return {path for path in home.rglob("*") if "checkpoint" in path.name}, {
            model.model_id for model in client.search_logged_models(experiments, max_results=1000)
        }

    example("accessing_results")  # an example that writes some, to check that they would be found
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
