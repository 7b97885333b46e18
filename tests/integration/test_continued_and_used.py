"""What becomes of a training that is recorded: somebody predicts with it, resumes it, forks it, and prunes its checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from ray.data.preprocessors import StandardScaler

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig
from trainlib import _storage as storage
from trainlib._cli.exit_codes import ExitCode
from trainlib._data.sources import inspect_source
from trainlib._prediction.model_names import find_model
from trainlib._prediction.plan import plan_prediction
from trainlib._prediction.predictor import BatchPredictor
from trainlib._registry.client import connect
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.cli import main
from trainlib.deployments.listed import listed
from trainlib.errors import (
    CheckpointNotFoundError,
    DataError,
    InvalidArgumentError,
    ModelNotFoundError,
    RunNotFoundError,
)
from trainlib.flows import fork, predict, resume, retention
from trainlib.result import Result

EXPERIMENT = "continued and used"
NO_CHECKPOINT = "m-" + "0" * 32

MODULE = '''
import os
import time
from pathlib import Path
from trainlib import Checkpoint, session, trainable

@trainable
def train(config):
    checkpoint = session.get_checkpoint()
    state = checkpoint.to_dict() if checkpoint else {"step": 0, "weight": 0.0}
    for step in range(state["step"], config["steps"]):
        state = {"step": step + 1, "weight": state["weight"] + config["lr"]}
        session.report({"weight": state["weight"]}, checkpoint=Checkpoint.from_dict(state))

def not_marked(config):
    train(config)

@trainable
def predictor(checkpoint):
    weight = checkpoint.to_dict()["weight"]
    def predict(batch):
        wait_for_another_worker()
        return {"y": batch["x"] * weight, "worker": [os.getpid()] * len(batch)}
    return predict

def wait_for_another_worker():
    """So few rows could all be predicted by the first worker that gets some."""
    here = Path(__file__).parent
    (here / f"worker-{os.getpid()}").touch()
    deadline = time.monotonic() + 300
    while len(list(here.glob("worker-*"))) < 2:
        if time.monotonic() > deadline:
            raise TimeoutError("no other worker gets any rows")
        time.sleep(0.01)

@trainable
def unloadable(checkpoint):
    raise ValueError("no such weights")

@trainable
def broken(checkpoint):
    def predict(batch):
        if batch["id"].max() == 999:
            raise ValueError("no such digit")
        return batch["x"]
    return predict
'''


@dataclass(frozen=True)
class Recorded:
    training: Result
    """Four checkpoints, with the weights 1, 2, 3 and 4."""
    rows: str
    checkpoints: list[str]
    """Their ids, oldest first."""


@pytest.fixture(scope="module", autouse=True)
def own_registry(tmp_path_factory) -> Iterator[None]:
    """What other tests have left interrupted is not resumed here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path_factory.mktemp('registry')}/mlflow.db")
        yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "my_model.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield _record(folder)


def _record(folder: Path) -> Recorded:
    import my_model

    (folder / "rows").mkdir()
    for part in range(4):
        ids = range(part * 250, part * 250 + 250)
        pd.DataFrame({"id": ids, "x": [float(each) for each in ids]}).to_csv(
            folder / "rows" / f"{part}.csv", index=False
        )
    training = DataParallelTrainer(
        my_model.train,
        train_loop_config={"steps": 4, "lr": 1.0},
        scaling_config=ScalingConfig(num_workers=1),
        run_config=RunConfig(name="weights", experiment_name=EXPERIMENT, verbose=0),
        datasets={"train": str(folder / "rows")},
        preprocessor=StandardScaler(columns=["x"]),
    ).fit()
    from trainlib._cli.registry import checkpoints_of

    ids = [each.id for each in reversed(checkpoints_of(training.run_id, 100))]
    assert len(ids) == 4
    return Recorded(training, str(folder / "rows"), ids)


def test_a_model_predicts_for_all_rows_on_several_workers(recorded, tmp_path):
    result = predict(
        model="weights",
        dataset=recorded.rows,
        predictor="my_model:predictor",
        keep_columns=["id"],
        batch_size=100,
        storage_path=str(tmp_path),
    )
    assert (result.rows, result.model, result.run_id) == (
        1000,
        f"checkpoint {recorded.checkpoints[-1]}",
        recorded.training.run_id,
    )
    assert [each.name for each in tmp_path.iterdir()] == [Path(result.folder).name], "and nothing else is left"
    written = pd.read_parquet([str(each) for each in sorted(Path(result.folder).glob("*.parquet"))])
    assert list(written.columns) == list(result.columns) == ["id", "y", "worker"]
    assert written["id"].tolist() == list(range(1000))
    scaled = (written["id"] - 499.5) / written["id"].std(ddof=0)
    assert (written["y"] - 4 * scaled).abs().max() < 1e-6, "the preprocessor of the training was applied"
    assert written["worker"].nunique() == 2
    assert json.loads((Path(result.folder) / "_predictions.json").read_text())["rows"] == 1000


@pytest.mark.parametrize(("function", "why"), [("broken", "no such digit"), ("unloadable", "no such weights")])
def test_predictions_are_complete_or_not_there(recorded, tmp_path, capfd, function, why):
    """On the command line, which predicts without Prefect."""
    options = ("--predictor", f"my_model:{function}", "--workers", "1", "--storage-path", str(tmp_path))
    assert main(["predict", "weights", recorded.rows, *options]) == ExitCode.FAILED
    assert why in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_named_by_alias_version_checkpoint_or_run(recorded):
    second = recorded.checkpoints[1]
    promote_checkpoint(second, "named-weights", "champion")
    assert find_model("models:/named-weights@champion").model_id == second
    by_version = find_model("models:/named-weights/1")
    assert (by_version.model_id, by_version.title, by_version.version) == (second, "named-weights version 1", "1")
    assert find_model(second).model_id == find_model(f"models:/{second}").model_id == second
    assert find_model(recorded.training.run_id[:8]).model_id == recorded.checkpoints[-1]


def test_a_model_that_mlflow_can_load_needs_no_predictor(recorded, registry, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})  # a worker sets its own
    from mlflow import pyfunc

    class Double(pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input["x"] * 2

    pyfunc.save_model(str(tmp_path / "double"), python_model=Double(), pip_requirements=[])
    registry.create_registered_model("double")
    registry.create_model_version("double", source=str(tmp_path / "double"))
    plan = plan_prediction(find_model("models:/double/1"), inspect_source(recorded.rows))
    predicted = BatchPredictor(plan.recipe)(pd.DataFrame({"id": [1, 2], "x": [1.0, 2.5]}))
    assert predicted.to_dict("list") == {"id": [1, 2], "x": [1.0, 2.5], "prediction": [2.0, 5.0]}


@pytest.mark.parametrize(
    ("field", "value", "kind", "why"),
    [
        ("model", "nobody", RunNotFoundError, "no training named 'nobody'"),
        ("model", NO_CHECKPOINT, CheckpointNotFoundError, "no checkpoint has the id"),
        ("model", "models:/nobody@best", ModelNotFoundError, "no registered model is called 'nobody'"),
        ("model", "models:/weights", ModelNotFoundError, "names no version"),
        ("dataset", "/nowhere/rows.csv", DataError, "/nowhere"),
        ("dataset", "other.csv", DataError, "needs the column 'x'"),
        ("predictor", "os:system", InvalidArgumentError, "is not marked"),
        ("predictor", "", InvalidArgumentError, "not a model that MLflow can predict with"),
        ("keep_columns", ["name"], InvalidArgumentError, "has no column 'name'; it has id, x"),
        ("storage_path", "s3://key:hunter2@bucket", InvalidArgumentError, "has a password in it"),
    ],
)
def test_a_bad_value_is_refused_at_once_by_the_name_of_its_field(
    recorded, tmp_path, monkeypatch, field, value, kind, why
):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": [1], "name": ["a"]}).to_csv("other.csv", index=False)
    good = {"model": "weights", "dataset": recorded.rows, "predictor": "my_model:predictor"}
    with pytest.raises(kind, match=why) as refused:
        predict(**{**good, field: value})
    assert str(refused.value).startswith(field)


def test_a_training_is_forked_from_any_checkpoint_with_other_settings(recorded, registry):
    result = fork(recorded.checkpoints[0], {"lr": 10.0, "steps": 3}, name="a fork")
    assert [point.value for point in registry.get_metric_history(result.run_id, "weight")] == [11.0, 21.0]
    assert registry.get_run(result.run_id).data.tags["trainlib.forked_from"] == recorded.checkpoints[0]


def test_a_training_that_was_interrupted_is_resumed(recorded, registry, monkeypatch):
    import my_model

    assert resume() is None, "nothing was interrupted"
    run_id = fork(recorded.checkpoints[2], {"steps": 4}, name="to be resumed").run_id
    with pytest.raises(InvalidArgumentError, match=r"^run: 'to be resumed' .* has finished"):
        resume(run_id)
    with pytest.raises(InvalidArgumentError, match=r"^run: .* is not the newest checkpoint of 'weights'"):
        resume(recorded.checkpoints[0])
    with pytest.raises(RunNotFoundError, match=r"^run: no training named 'nobody'"):
        resume("nobody")
    registry.set_terminated(run_id, "KILLED")
    with pytest.raises(InvalidArgumentError, match=r"^secrets: api_key is not missing: what was not saved .* nothing"):
        resume(run_id, secrets={"api_key": "x"})
    with monkeypatch.context() as without_mark:
        without_mark.delattr(my_model.train, "__trainlib_trainable__")
        with pytest.raises(InvalidArgumentError, match=r"^run: it trains my_model:train, which is not marked"):
            resume(run_id)
        assert resume() is None, "what no form may call is left alone"
    result = resume(num_workers=2)
    assert result.run_id == run_id, "it is the newest that was interrupted"
    assert registry.get_run(run_id).info.status == "FINISHED"


@pytest.mark.parametrize(
    ("given", "kind", "why"),
    [
        ({"source": "nobody"}, RunNotFoundError, "^source: no training named 'nobody'"),
        ({"source": NO_CHECKPOINT}, CheckpointNotFoundError, "^source: no checkpoint has the id"),
        ({"source": "weights", "changes": {"rate": 1}}, InvalidArgumentError, "^changes: .*no key 'rate'.*steps, lr"),
    ],
)
def test_a_fork_of_nothing_is_refused_by_the_name_of_its_field(recorded, given, kind, why):
    with pytest.raises(kind, match=why):
        fork(**given)


def test_pruning_deletes_what_nobody_needs(recorded, registry, capfd):
    """It comes last: the checkpoints are gone then. The second one has an alias, and the third one is what a fork needs."""
    experiment = registry.get_experiment_by_name(EXPERIMENT).experiment_id

    def left(run_id: str) -> set[str]:
        found = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{run_id}'")
        return {each.model_id for each in found}

    promote_checkpoint(recorded.checkpoints[1], "named-weights", "champion")
    interrupted = fork(recorded.checkpoints[2], {"steps": 5}, name="a fork that is not over").run_id
    assert len(left(interrupted)) == 2
    registry.set_terminated(interrupted, "KILLED")
    policy = {"keep": 0, "older_than_days": 0.0, "experiment": EXPERIMENT}

    mine = recorded.training.run_id
    would = retention(**policy)
    gone = {recorded.checkpoints[0], recorded.checkpoints[3]}
    assert {each.checkpoint.model_id for each in would.deleted if each.run_id == mine} == gone
    assert would.freed > 0
    capfd.readouterr()
    assert (
        main(["prune", "--keep", "0", "--older-than-days", "0", "--experiment", EXPERIMENT, "--json"]) == ExitCode.DONE
    )
    printed = json.loads(capfd.readouterr().out)
    assert {each["id"] for each in printed["checkpoints"]} == {each.checkpoint.model_id for each in would.deleted}
    assert (printed["is_dry_run"], printed["bytes"]) == (True, would.freed)
    assert left(mine) == set(recorded.checkpoints), "a dry run is the default"
    with pytest.raises(InvalidArgumentError, match=r"^metric: no checkpoint was reported with 'accuracy'.*weight"):
        retention(**policy, metric="accuracy")
    with pytest.raises(RunNotFoundError, match=r"^experiment: there is no experiment 'nobody'"):
        retention(experiment="nobody")
    best = retention(**{**policy, "keep": 1}, metric="weight")
    assert recorded.checkpoints[3] not in {each.checkpoint.model_id for each in best.deleted}
    files = {each.checkpoint.model_id: Path(each.checkpoint.location) for each in would.deleted}
    assert all(each.exists() for each in files.values())

    done = retention(**policy, dry_run=False)
    assert done.freed == would.freed
    assert left(mine) == set(recorded.checkpoints[1:3])
    assert not any(each.exists() for each in files.values())
    assert len(left(interrupted)) == 1, "what a run is resumed from stays"
    links = list((storage.home() / "runs").glob(f"*_{mine[:8]}/checkpoints/checkpoint_*"))
    assert len(links) == 2
    assert all(link.exists() for link in links)
    assert retention(**policy, dry_run=False).deleted == ()


def test_a_checkpoint_whose_deletion_was_interrupted_does_not_count(recorded, registry):
    third = recorded.checkpoints[2]
    registry.set_logged_model_tags(third, {"trainlib.deleted": "true"})
    with pytest.raises(CheckpointNotFoundError):
        find_model(third)
    (rest,) = retention(keep=9, older_than_days=9.0, experiment=EXPERIMENT, dry_run=False).deleted
    assert (rest.checkpoint.model_id, rest.is_leftover) == (third, True)
    assert not Path(rest.checkpoint.location).exists()


def test_forms_that_nobody_has_filled_in_work_in_an_empty_registry(tmp_path, monkeypatch):
    """What they need of the demo is trained first."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    registry = connect(current_store())
    parameters = {each.name: each.parameters for each in listed()}
    predicted = predict(**parameters["predict"], storage_path=str(tmp_path))
    assert (predicted.rows, predicted.model, predicted.model_version) == (1797, "digits version 1", "1")
    written = pd.read_parquet([str(each) for each in Path(predicted.folder).glob("*.parquet")])
    assert (written["digit"] == written["target"]).mean() > 0.9
    forked = fork(**parameters["fork"])
    assert forked.metrics["training_iteration"] > 0
    assert registry.get_run(forked.run_id).data.tags["trainlib.forked_from"] == predicted.checkpoint
    assert resume(**parameters["resume"]) is None
    assert retention(**parameters["retention"]).deleted == ()
