"""The checkpoint store, against a real MLflow store."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from trainlib import CheckpointConfig
from trainlib._registry import checkpoint_files
from trainlib._registry.checkpoints import CheckpointStore
from trainlib._registry.logged_models import read_checkpoints


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(checkpoint_files, "PAUSES_S", (0.05, 0.05))


@pytest.fixture
def new_store(registry, tmp_path):
    """Makes the checkpoint store of a new run. Keyword arguments are those of CheckpointConfig."""

    def new(name: str, **config) -> CheckpointStore:
        root = str(tmp_path / "artifacts")
        experiment = registry.create_experiment(name, artifact_location=root)
        return CheckpointStore(
            registry,
            run_id=registry.create_run(experiment).info.run_id,
            experiment_id=experiment,
            artifact_root=root,
            log_dir=tmp_path,
            config=CheckpointConfig(**config),
        )

    return new


def stage(store: CheckpointStore, index: int) -> str:
    folder = Path(store.files.make_staging_folder()) / f"of-{index}" / f"checkpoint_{index:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_text(str(index))
    return str(folder)


def commit(store: CheckpointStore, index: int, folder: str, *, upload=shutil.move, flush_metrics=lambda: None, **facts):
    facts = {"metrics": {}, "score": None, "seconds": 0.0, **facts}
    pending = store.create_in_background(index=index, iteration=index + 1, **facts)
    store.commit_in_background(index, pending, folder, upload=upload, flush_metrics=flush_metrics)
    return pending.result()


def save(store: CheckpointStore, index: int) -> None:
    folder = stage(store, index)
    commit(store, index, folder, metrics={"loss": 0.5})
    assert store.settle() == []


def found(store: CheckpointStore):
    return read_checkpoints(store._client, store._experiment_id, store._run_id)


def test_a_checkpoint_that_is_being_copied_stays_until_it_has_been(new_store):
    store = new_store("held", num_to_keep=1)
    save(store, 0)
    with store.kept.hold_newest() as held:
        save(store, 1)
        save(store, 2)
        assert Path(held.location, "weights").read_text() == "0"
    store.kept.prune()
    assert not Path(held.location).exists()
    assert [saved.index for saved in store.kept.best()] == [2]
    store.close()


def test_a_checkpoint_that_is_recorded_twice_is_saved_once(new_store):
    """Whoever was interrupted while recording a report records it again."""
    store = new_store("twice")
    folder = stage(store, 0)
    assert not store.has_heard_of(0)
    both_recorded = threading.Event()

    def upload(path: str, location: str) -> None:
        both_recorded.wait()
        shutil.move(path, location)

    first, second = commit(store, 0, folder, upload=upload), commit(store, 0, folder, upload=upload)
    both_recorded.set()
    assert first == second
    assert store.settle() == []
    assert store.has_heard_of(0)
    assert [saved.index for saved in found(store).saved] == [0]
    assert found(store).unfinished == ()
    store.close()


def test_a_checkpoint_that_was_created_and_never_committed_is_removed(new_store):
    """Whoever recorded its report was interrupted halfway."""
    store = new_store("halfway")
    commit(store, 0, stage(store, 0), upload=shutil.move)
    store.create_in_background(index=1, iteration=2, metrics={}, score=None, seconds=0.0).result()
    assert store.settle() == []
    assert len(found(store).unfinished) == 1
    store.close()
    assert [saved.index for saved in found(store).saved] == [0]
    assert found(store).unfinished == ()


def test_a_checkpoint_becomes_visible_when_its_files_and_its_metrics_are_there(new_store):
    store = new_store("order")
    folder = stage(store, 0)
    seen: list[str] = []

    def upload(path: str, location: str) -> None:
        assert found(store).saved == ()
        assert len(found(store).unfinished) == 1
        seen.append("upload")
        shutil.move(path, location)

    def flush_metrics() -> None:
        assert found(store).saved == ()
        seen.append("flush")

    more = {"metrics": {"loss": 0.5}, "score": 0.5, "seconds": 2.0}
    pending = commit(store, 0, folder, upload=upload, flush_metrics=flush_metrics, **more)
    assert store.settle() == []
    assert seen == ["upload", "flush"]
    assert found(store).saved == (pending,)
    assert found(store).unfinished == ()
    store.close()


def test_a_checkpoint_whose_upload_fails_leaves_nothing(new_store):
    store = new_store("failing")
    tries = 0

    def upload(path: str, location: str) -> None:
        nonlocal tries
        tries += 1
        shutil.copytree(path, location, dirs_exist_ok=True)
        raise OSError("the disk is full")

    pending = commit(store, 0, stage(store, 0), upload=upload)
    assert [str(error) for error in store.settle()] == ["the disk is full"]
    assert store.settle() == [], "an error is told once"
    assert found(store).saved == found(store).unfinished == ()
    assert store.newest() is None
    assert tries == 3
    assert not Path(pending.location).exists(), "bytes of a checkpoint that does not exist"
    assert store.settled == 0, "it is waited for no more"
    store.close()


def test_an_upload_that_fails_is_tried_again(new_store):
    store = new_store("one in two")
    tries = 0

    def upload(path: str, location: str) -> None:
        nonlocal tries
        tries += 1
        if tries % 2:
            raise OSError("the store is busy")
        shutil.move(path, location)

    for index in range(3):
        commit(store, index, stage(store, index), upload=upload)
    assert store.settle() == []
    assert tries == 6
    assert [saved.index for saved in found(store).saved] == [0, 1, 2]
    store.close()


def test_an_upload_that_would_fail_again_is_not(new_store):
    store = new_store("hopeless")
    tries = 0

    def upload(path: str, location: str) -> None:
        nonlocal tries
        tries += 1
        raise PermissionError("read-only bucket")

    commit(store, 0, stage(store, 0), upload=upload)
    assert [(lost.index, str(lost)) for lost in store.lost() or store.settle()] == [(0, "read-only bucket")]
    assert tries == 1
    store.close()


def test_what_goes_wrong_after_a_checkpoint_is_saved_is_a_warning(new_store, tmp_path):
    store = new_store("afterwards", num_to_keep=1)
    (tmp_path / "checkpoints" / "checkpoint_000000" / "something").mkdir(
        parents=True
    )  # a folder in the place of the link
    save(store, 0)
    (warning,) = store.remarks()
    assert "checkpoint_000000 is saved, but could not be linked" in warning
    newest = store.newest()
    assert newest is not None
    assert newest.index == 0
    save(store, 1)  # what cannot be unlinked cannot be pruned
    (warning,) = store.remarks()
    assert "checkpoint_000000 could not be deleted" in warning
    assert [saved.index for saved in store.kept.best()] == [1]
    shutil.rmtree(tmp_path / "checkpoints" / "checkpoint_000000")
    assert store.kept.prune() == []
    assert not Path(newest.location).exists()
    store.close()


def test_what_a_killed_process_was_saving_is_removed_and_what_is_not_ours_stays(new_store, registry):
    killed = new_store("killed")
    save(killed, 0)
    pending = killed.create(index=1, iteration=2, metrics={}, score=None, seconds=0.0)
    Path(pending.location).mkdir(parents=True)
    stage(killed, 1)
    theirs = registry.create_logged_model(killed._experiment_id, name="theirs", source_run_id=killed._run_id)
    store = new_store("killed again")
    store.files.staging = killed.files.staging
    store.remove_unfinished(found(killed).unfinished)
    assert not Path(pending.location).exists()
    assert not Path(killed.files.staging).exists()
    assert [saved.index for saved in found(killed).saved] == [0]
    assert found(killed).unfinished == ()
    assert registry.get_logged_model(theirs.model_id).name == "theirs"


def test_a_copy_of_another_runs_newest_checkpoint_is_the_newest_one_here(new_store):
    store, other = new_store("copying"), new_store("copied")
    save(store, 0)
    save(other, 4)
    save(other, 5)
    store.copy_newest_of(other, iteration=7, seconds=3.0)
    newest = store.newest()
    assert newest is not None
    assert (newest.index, newest.iteration, newest.seconds, newest.metrics) == (1, 7, 3.0, {"loss": 0.5})
    assert Path(newest.location, "weights").read_text() == "5"
    assert [saved.index for saved in found(store).saved] == [0, 1]
    assert [saved.index for saved in found(other).saved] == [4, 5]
    store.close()
    other.close()
