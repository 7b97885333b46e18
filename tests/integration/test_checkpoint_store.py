"""The checkpoint store, against a real MLflow store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trainlib import CheckpointConfig
from trainlib._registry.checkpoints import CheckpointStore
from trainlib._registry.logged_models import read_checkpoints


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
    folder = Path(store.make_staging_folder()) / f"of-{index}" / f"checkpoint_{index:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_text(str(index))
    return str(folder)


def save(store: CheckpointStore, index: int) -> None:
    folder = stage(store, index)
    pending = store.create(index=index, iteration=index + 1, metrics={"loss": 0.5}, score=None, seconds=0.0)
    store.commit_in_background(pending, folder, upload=shutil.move, flush_metrics=lambda: None)
    assert store.settle() == []


def found(store: CheckpointStore):
    return read_checkpoints(store._client, store._experiment_id, store._run_id)


def test_a_checkpoint_that_is_being_copied_stays_until_it_has_been(new_store):
    store = new_store("held", num_to_keep=1)
    save(store, 0)
    with store.hold_newest() as held:
        save(store, 1)
        save(store, 2)
        assert Path(held.location, "weights").read_text() == "0"
    store.prune()
    assert not Path(held.location).exists()
    assert [saved.index for saved in store.best()] == [2]
    store.close()


def test_a_checkpoint_becomes_visible_when_its_files_and_its_metrics_are_there(new_store):
    store = new_store("order")
    folder = stage(store, 0)
    seen: list[str] = []

    def upload(path: str, location: str) -> None:
        assert found(store).saved == ()
        seen.append("upload")
        shutil.move(path, location)

    def flush_metrics() -> None:
        assert found(store).saved == ()
        seen.append("flush")

    pending = store.create(index=0, iteration=1, metrics={"loss": 0.5}, score=0.5, seconds=2.0)
    assert found(store).unfinished[0].model_id == pending.model_id
    store.commit_in_background(pending, folder, upload=upload, flush_metrics=flush_metrics)
    assert store.settle() == []
    assert seen == ["upload", "flush"]
    assert found(store).saved == (pending,)
    assert found(store).unfinished == ()
    store.close()


def test_a_checkpoint_whose_upload_fails_leaves_nothing(new_store):
    store = new_store("failing")

    def upload(path: str, location: str) -> None:
        raise OSError("the disk is full")

    pending = store.create(index=0, iteration=1, metrics={}, score=None, seconds=0.0)
    store.commit_in_background(pending, stage(store, 0), upload=upload, flush_metrics=lambda: None)
    assert [str(error) for error in store.settle()] == ["the disk is full"]
    assert store.settle() == [], "an error is told once"
    assert found(store).saved == found(store).unfinished == ()
    assert store.newest() is None
    store.close()


def test_what_a_killed_process_was_saving_is_removed_and_what_is_not_ours_stays(new_store, registry):
    killed = new_store("killed")
    save(killed, 0)
    pending = killed.create(index=1, iteration=2, metrics={}, score=None, seconds=0.0)
    Path(pending.location).mkdir(parents=True)
    stage(killed, 1)
    theirs = registry.create_logged_model(killed._experiment_id, name="theirs", source_run_id=killed._run_id)
    store = new_store("killed again")
    store.staging = killed.staging
    store.remove_unfinished(found(killed).unfinished)
    assert not Path(pending.location).exists()
    assert not Path(killed.staging).exists()
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
