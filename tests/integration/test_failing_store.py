"""A store that fails: uploads are tried again, and what cannot be saved is said plainly and leaves nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.integration import flaky_store
from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    FailureConfig,
    Result,
    RunConfig,
    TrainingFailedError,
    session,
)
from trainlib._execution.causes import Cause
from trainlib._registry import checkpoint_files, checkpoints
from trainlib._registry.attempts import Outcome, recorded_attempts
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.logged_models import read_checkpoints

NUMBER = 8


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(flaky_store.ROOT, str(tmp_path))
    monkeypatch.setattr(checkpoint_files, "PAUSES_S", (0.05, 0.1, 0.1))
    return tmp_path


def train_func(config: dict) -> None:
    from tests.integration import flaky_store

    os.environ[flaky_store.ROOT] = config["root"]
    os.environ[flaky_store.EVERY] = str(config["every"])
    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["step"] + 1 if checkpoint else 0
    heals = Path(config["root"], "heals")
    for step in range(start, NUMBER):
        if step == config.get("fails_from") and not heals.exists():
            while len(stored(Path(config["root"]))) < step:  # until those before are saved
                time.sleep(0.05)
            os.environ[flaky_store.EVERY] = "1"
        if step == config.get("heals_from"):
            time.sleep(2.0)  # until the one before has failed
            os.environ[flaky_store.EVERY] = "1000"
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))
        time.sleep(0.05)
    heals.touch()


def trainer(root: Path, name: str, *, checkpoint: dict | None = None, max_failures: int = 0, **config):
    os.environ[flaky_store.EVERY] = "1000"
    return DataParallelTrainer(
        train_func,
        train_loop_config={"root": str(root), **config},
        run_config=RunConfig(
            name=name,
            storage_path="flaky://bucket/runs",
            experiment_name=name,
            checkpoint_config=CheckpointConfig(**(checkpoint or {})),
            failure_config=FailureConfig(max_failures=max_failures),
        ),
    )


def stored(root: Path) -> list[str]:
    """The checkpoints of which the store has anything."""
    return sorted(path.parent.name for path in (root / "bucket").rglob("checkpoint_*/*"))


def test_uploads_that_fail_now_and_then_are_made_again(root, registry, capsys):
    result = trainer(root, "now and then", every=3).fit()
    assert result.attempts == 1
    run = registry.get_run(result.run_id)
    found = read_checkpoints(registry, run.info.experiment_id, result.run_id)
    assert [saved.index for saved in found.saved] == list(range(NUMBER))
    assert found.unfinished == ()
    assert stored(root) == [f"checkpoint_{index:06d}" for index in range(NUMBER)]
    assert [as_checkpoint(saved).to_dict()["step"] for saved in found.saved] == list(range(NUMBER))
    assert "could not" not in capsys.readouterr().err
    log_dir = result.log_dir
    assert {"result.json", "progress.csv", "params.json", "rank_0.log"} <= {file.name for file in log_dir.iterdir()}
    newest = (log_dir / "checkpoints" / "newest.uri").read_text().strip()
    assert newest == (log_dir / "checkpoints" / f"checkpoint_{NUMBER - 1:06d}.uri").read_text().strip()
    assert newest == result.checkpoint.path == Result.from_path(log_dir).checkpoint.path


def test_a_checkpoint_that_cannot_be_saved_is_a_warning_if_a_newer_one_was(root, registry, capsys):
    result = trainer(root, "newer saved", every=1000, fails_from=4, heals_from=5).fit()
    assert result.attempts == 1
    run = registry.get_run(result.run_id)
    assert run.info.status == "FINISHED"
    found = read_checkpoints(registry, run.info.experiment_id, result.run_id)
    assert [saved.index for saved in found.saved] == [0, 1, 2, 3, 5, 6, 7]
    assert found.unfinished == ()
    assert "checkpoint_000004" not in stored(root), "bytes of a checkpoint that does not exist"
    said = capsys.readouterr().err
    assert "checkpoint_000004 could not be saved in flaky://bucket/runs/artifacts: OSError: 503 SlowDown" in said
    assert "\x1b[" not in said.replace("\x1b[K", "")
    assert "Traceback" not in said


def test_a_newest_checkpoint_that_cannot_be_saved_is_a_failure_of_the_store(root, registry):
    with pytest.raises(TrainingFailedError) as caught:
        trainer(root, "not saved", every=1000, fails_from=NUMBER - 1).fit()
    assert caught.value.cause is Cause.STORAGE
    text = str(caught.value)
    assert text.startswith(
        "checkpoint_000007 could not be saved in flaky://bucket/runs/artifacts: OSError: 503 SlowDown"
    )
    assert "\x1b" not in text
    assert "ray::" not in text
    assert "checkpoint_000007" not in stored(root)


def test_a_store_that_failed_is_tried_again_by_another_attempt(root, registry, capsys):
    result = trainer(root, "store retried", every=1000, fails_from=NUMBER - 1, max_failures=1).fit()
    run = registry.get_run(result.run_id)
    assert [attempt.outcome for attempt in recorded_attempts(run.data.tags)] == [Outcome.STORAGE, Outcome.FINISHED]
    assert "trying again in 1 s from checkpoint_000006" in capsys.readouterr().err
    found = read_checkpoints(registry, run.info.experiment_id, result.run_id)
    assert [saved.index for saved in found.saved] == list(range(NUMBER))


def test_a_store_that_is_slower_than_the_training_holds_it_up(root, registry, capsys, monkeypatch):
    staged: list[int] = []
    commit = checkpoints.CheckpointStore._commit

    def slowly(store, *args) -> None:
        staged.append(len(store._commits))
        time.sleep(0.4)
        commit(store, *args)

    monkeypatch.setattr(checkpoints.CheckpointStore, "_commit", slowly)
    result = trainer(root, "slow store", every=1000, checkpoint={"max_staged": 2}).fit()
    assert max(staged) <= 3, "two wait, and a third may be on its way"
    said = capsys.readouterr().err
    assert said.count("the store is slower than the training") == 1
    run = registry.get_run(result.run_id)
    found = read_checkpoints(registry, run.info.experiment_id, result.run_id)
    assert [saved.index for saved in found.saved] == list(range(NUMBER))
