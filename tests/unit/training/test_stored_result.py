"""A result is read from the folder of its training."""

from __future__ import annotations

import base64
import json
import os
import pickle
from pathlib import Path
from typing import ClassVar

import pytest

from trainlib import Checkpoint, Result, TrainingFailedError
from trainlib import _storage as storage
from trainlib._execution.causes import Cause
from trainlib._registry.checkpoint_shelf import CheckpointShelf
from trainlib._registry.retention import SavedCheckpoint
from trainlib._training.error_file import forget_error, keep_error
from trainlib._training.log_files import LogFiles
from trainlib.errors import InvalidArgumentError, RunNotFoundError, UntrustedCheckpointError
from trainlib.result import StopReason


def say_which(folder: Path, **facts) -> None:
    known = {"run_id": "0" * 32, "name": "digits", "kind": "training", "tracking_uri": "sqlite:///x", "url": "http://x"}
    (folder / "run.json").write_text(json.dumps({**known, **facts, "of a newer trainlib": 1}))


def test_it_has_everything_that_the_training_gave(tmp_path):
    score = {"num_to_keep": 1, "checkpoint_score_attribute": "loss", "checkpoint_score_order": "min"}
    say_which(tmp_path, status="FINISHED", attempts=2, stopped=["nan", "loss is NaN"], checkpoint_config=score)
    logs = LogFiles(tmp_path)
    for iteration in (1, 2, 2, 3):  # an attempt has repeated one
        logs.reported({"loss": 1.0 / iteration, "training_iteration": iteration, "config": {"lr": 0.1}})
    logs.close()
    shelf = CheckpointShelf(tmp_path, is_local=True)
    for index, loss in enumerate((0.25, 0.5)):
        folder = tmp_path / "artifacts" / f"checkpoint_{index:06d}"
        Checkpoint.from_dict({"epoch": index}).to_directory(folder)
        shelf.put(SavedCheckpoint(index, index + 1, f"m-{index}", str(folder), loss, {"loss": loss}))
    shelf.put(SavedCheckpoint(2, 3, "m-2", str(tmp_path / "pruned since"), 0.1, {"loss": 0.1}))

    result = Result.from_path(str(tmp_path))
    assert (result.run_id, result.run_url, result.attempts) == ("0" * 32, "http://x", 2)
    assert (result.metrics["loss"], result.metrics["done"], result.config) == (1 / 3, True, {"lr": 0.1})
    assert result.metrics_dataframe["training_iteration"].tolist() == [1, 2, 3]
    assert result.checkpoint.to_dict()["epoch"] == 1
    ((best, metrics),) = result.best_checkpoints
    assert (best.to_dict()["epoch"], metrics) == (0, {"loss": 0.25})
    assert result.stopped.reason is StopReason.NAN
    assert (result.log_dir, result.path, result.error) == (tmp_path, str(tmp_path), None)


def test_it_has_the_error_that_the_function_raised(tmp_path):
    failure = TrainingFailedError("rank 1 raised KeyError: 'x'", cause=Cause.USER, rank=1)
    failure.__cause__ = KeyError("x")
    assert keep_error(failure, tmp_path) is None
    say_which(tmp_path, status="FAILED", attempts=1, message=str(failure))
    with pytest.raises(KeyError, match="x"):
        raise Result.from_path(tmp_path).error
    assert "KeyError: 'x'" in (tmp_path / "error.txt").read_text()
    forget_error(tmp_path)
    error = Result.from_path(tmp_path).error
    assert isinstance(error, TrainingFailedError)
    assert str(error) == "rank 1 raised KeyError: 'x'"


class Planted(RuntimeError):  # noqa: N818
    """Runs code when it is unpickled."""

    loaded: ClassVar[list[str]] = []

    def __reduce__(self):
        return planted, (str(self),)


def planted(where: str) -> Planted:
    Planted.loaded.append(where)
    return Planted(where)


def plant_pickles(folder: Path) -> None:
    """A folder of a failed training, with a pickle wherever one could be."""
    say_which(folder, status="FAILED", attempts=1, message="rank 0 raised Planted")
    (folder / "error.pkl").write_bytes(pickle.dumps(Planted("error")))
    row = base64.b64encode(pickle.dumps(Planted("row"))).decode()
    (folder / "result.json").write_text(json.dumps({"training_iteration": 1, "a pickled row": row}) + "\n")
    Checkpoint.from_dict({"epoch": Planted("checkpoint")}).to_directory(folder / "saved")
    saved = SavedCheckpoint(0, 1, "m-0", str(folder / "saved"), None, {})
    CheckpointShelf(folder, is_local=True).put(saved)
    Planted.loaded.clear()


def test_no_code_of_other_users_runs(tmp_path, monkeypatch):
    plant_pickles(tmp_path)
    with monkeypatch.context() as as_somebody_else:
        as_somebody_else.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
        result = Result.from_path(tmp_path)
        assert isinstance(result.error, TrainingFailedError)
        assert str(result.error) == "rank 0 raised Planted"
        assert [row["training_iteration"] for row in result.history] == [1]
        for checkpoint in (result.checkpoint, result.best_checkpoints[0][0]):
            with pytest.raises(UntrustedCheckpointError):
                checkpoint.to_dict()
        assert Planted.loaded == []

        trusted = Result.from_path(tmp_path, trust=True)
        assert isinstance(trusted.error, Planted)
        assert isinstance(trusted.checkpoint.to_dict()["epoch"], Planted)
    assert isinstance(Result.from_path(tmp_path).error, Planted)
    list(Result.from_path(tmp_path).history)
    assert "row" not in Planted.loaded, "no training pickles rows there, so none is loaded for anybody"


@pytest.fixture
def give_away(monkeypatch):
    """Makes files and folders somebody else's. Only root could really do so."""
    is_own, given = storage.is_own, set()
    monkeypatch.setattr(storage, "is_own", lambda path: is_own(path) and Path(path).resolve() not in given)
    return lambda path: given.add(path.resolve())


@pytest.mark.parametrize("given_away", [".", "error.pkl"])
def test_an_error_is_loaded_only_if_both_its_folder_and_its_file_are_ones_own(tmp_path, give_away, given_away):
    plant_pickles(tmp_path)
    give_away(tmp_path / given_away)
    assert not isinstance(Result.from_path(tmp_path).error, Planted)
    assert Planted.loaded == []


@pytest.mark.parametrize("given_away", [".", "checkpoints", "checkpoints/saved.jsonl"])
def test_a_checkpoint_that_somebody_else_has_named_is_not_trusted(tmp_path, give_away, given_away):
    plant_pickles(tmp_path)
    for name in (given_away, "saved"):
        give_away(tmp_path / name)
    with pytest.raises(UntrustedCheckpointError):
        Result.from_path(tmp_path).checkpoint.to_dict()
    assert "checkpoint" not in Planted.loaded


def test_a_lost_worker_is_a_training_failed_error_again(tmp_path):
    lost = TrainingFailedError("rank 0 died", cause=Cause.WORKER, rank=0)
    assert keep_error(lost, tmp_path) is None
    say_which(tmp_path, status="FAILED", attempts=1, message="rank 0 died")
    error = Result.from_path(tmp_path).error
    assert isinstance(error, TrainingFailedError)
    assert str(error) == "rank 0 died"


def test_one_that_is_under_way_or_was_killed_can_be_read_too(tmp_path):
    say_which(tmp_path)
    result = Result.from_path(tmp_path)
    assert (result.metrics, result.checkpoint, result.error, list(result.history)) == ({}, None, None, [])


def test_other_folders_say_what_they_are(tmp_path):
    with pytest.raises(RunNotFoundError, match=r"has no readable run.json, so it is not the folder of a training"):
        Result.from_path(tmp_path)
    with pytest.raises(RunNotFoundError, match="is no folder"):
        Result.from_path(tmp_path / "nowhere")
    say_which(tmp_path, kind="sweep")
    with pytest.raises(InvalidArgumentError, match=r"is the folder of a sweep. Get its results with Tuner.restore"):
        Result.from_path(tmp_path)
