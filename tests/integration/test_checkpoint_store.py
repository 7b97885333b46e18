"""The checkpoint store, against a real MLflow store."""

from __future__ import annotations

import shutil
from pathlib import Path

from trainlib import CheckpointConfig
from trainlib._execution.events import StagedCheckpoint
from trainlib._registry.checkpoints import CheckpointStore


def save(store: CheckpointStore, index: int) -> None:
    folder = Path(store.prepare_staging()) / f"of-{index}" / f"checkpoint_{index:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_text(str(index))
    pending = store.create(StagedCheckpoint(index, str(folder), None), index + 1, {}, 0.0)
    store.commit_behind(pending, str(folder), before=lambda: None, store=lambda path, place: shutil.move(path, place))
    assert store.settle() == []


def test_a_checkpoint_that_is_being_copied_stays_until_it_has_been(registry, tmp_path):
    experiment = registry.create_experiment("lending", artifact_location=str(tmp_path / "artifacts"))
    store = CheckpointStore(
        registry,
        run_id=registry.create_run(experiment).info.run_id,
        experiment_id=experiment,
        artifact_root=str(tmp_path / "artifacts"),
        log_dir=tmp_path,
        config=CheckpointConfig(num_to_keep=1),
    )
    save(store, 0)
    with store.lends_newest() as lent:
        save(store, 1)
        save(store, 2)
        assert Path(lent.location, "weights").read_text() == "0"
    store.prune()
    assert not Path(lent.location).exists()
    assert [saved.index for saved in store.best()] == [2]
    store.close()
