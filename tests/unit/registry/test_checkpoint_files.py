"""The files of checkpoints on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlib._registry import checkpoint_files
from trainlib._registry.checkpoint_files import CheckpointFiles
from trainlib._registry.patience import Patience
from trainlib._registry.retention import SavedCheckpoint


@pytest.fixture
def files(tmp_path, monkeypatch) -> CheckpointFiles:
    monkeypatch.setattr(checkpoint_files, "PAUSES_S", (0.0, 0.0))
    (tmp_path / "logs").mkdir()
    return CheckpointFiles(
        run_id="run",
        artifact_root=str(tmp_path / "artifacts"),
        log_dir=tmp_path / "logs",
        patience=Patience(1.0, "http://mlflow"),
    )


def saved(root: Path) -> SavedCheckpoint:
    folder = root / "models" / "m-1" / "artifacts" / "checkpoint_000003"
    folder.mkdir(parents=True)
    return SavedCheckpoint(3, 4, "m-1", str(folder), None, {}, 0.0)


def test_snapshots_wait_beside_the_artifacts_and_leave_nothing(files, tmp_path):
    assert files.is_local
    staging = Path(files.make_staging_folder())
    assert staging == tmp_path / "artifacts" / ".staging" / "run"
    (staging / "snapshot").mkdir()
    files.clear_staging()
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_snapshots_of_others_stay(files):
    others = Path(files.make_staging_folder()).with_name("another run")
    others.mkdir()
    files.clear_staging()
    assert others.exists()


def test_snapshots_for_a_store_elsewhere_wait_in_a_temporary_folder(tmp_path):
    files = CheckpointFiles(
        run_id="run", artifact_root="s3://bucket/artifacts", log_dir=tmp_path, patience=Patience(1.0, "http://mlflow")
    )
    assert not files.is_local
    assert Path(files.staging).name == "trainlib-run"


def test_a_checkpoint_is_linked_and_deleted_with_the_folder_of_its_model(files, tmp_path):
    checkpoint = saved(tmp_path)
    link = tmp_path / "logs" / "checkpoints" / "checkpoint_000003"
    files.shelf.put(checkpoint)
    files.shelf.put(checkpoint)
    assert link.resolve() == Path(checkpoint.location)
    files.delete(checkpoint)
    files.shelf.remove(checkpoint)
    assert not link.is_symlink()
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (2, 3)])
def test_what_fails_in_the_store_is_tried_again(files, failures, tries):
    tried: list[int] = []

    def act() -> None:
        tried.append(1)
        if len(tried) <= failures:
            raise OSError("the store is busy")

    files.in_store(act)
    assert len(tried) == tries


@pytest.mark.parametrize(("error", "tries"), [(OSError("busy"), 3), (PermissionError("no"), 1), (ValueError("no"), 1)])
def test_what_goes_on_failing_or_is_hopeless_is_raised(files, error, tries):
    tried: list[int] = []

    def act() -> None:
        tried.append(1)
        raise error

    with pytest.raises(type(error)):
        files.in_store(act)
    assert len(tried) == tries
