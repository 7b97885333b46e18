"""What the folder of a training shows of its checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlib._registry.checkpoint_shelf import CheckpointShelf, read_shelf, withdraw
from trainlib._registry.retention import SavedCheckpoint


def saved(index: int, root: str = "s3://bucket/artifacts", **more) -> SavedCheckpoint:
    return SavedCheckpoint(index, index + 1, f"m-{index}", f"{root}/checkpoint_{index:06d}", **more)


def names(folder: Path) -> set[str]:
    return {each.name for each in (folder / "checkpoints").iterdir()} - {"saved.jsonl"}


def test_links_show_which_is_the_newest_and_which_are_the_best(tmp_path):
    shelf = CheckpointShelf(tmp_path, is_local=True)
    kept = [saved(index, str(tmp_path / "artifacts")) for index in range(4)]
    for each in kept:
        Path(each.location).mkdir(parents=True)
        shelf.put(each)
    shelf.mark(kept[1], [kept[1], kept[0]])
    shelf.mark(kept[3], [kept[2], kept[0]])
    shelf.remove(kept[1])
    checkpoints = tmp_path / "checkpoints"
    assert names(tmp_path) == {
        *("checkpoint_000000", "checkpoint_000002", "checkpoint_000003"),
        *("newest", "best_1", "best_2"),
    }
    marks = {name: (checkpoints / name).resolve().name for name in ("newest", "best_1", "best_2")}
    assert marks == {"newest": "checkpoint_000003", "best_1": "checkpoint_000002", "best_2": "checkpoint_000000"}
    shelf.mark(kept[3], [kept[2]])
    assert "best_2" not in names(tmp_path)


def test_what_is_in_a_store_elsewhere_is_shown_with_its_uri(tmp_path):
    shelf = CheckpointShelf(tmp_path, is_local=False)
    shelf.put(saved(0))
    shelf.put(saved(1))
    shelf.mark(saved(1), [saved(0)])
    shelf.remove(saved(0))
    shelf.remove(saved(0))
    assert names(tmp_path) == {"checkpoint_000001.uri", "newest.uri", "best_1.uri"}
    assert (tmp_path / "checkpoints" / "newest.uri").read_text() == "s3://bucket/artifacts/checkpoint_000001\n"


def test_it_is_read_again_as_it_was_left(tmp_path):
    assert read_shelf(tmp_path) == []
    shelf = CheckpointShelf(tmp_path, is_local=False)
    for index in (0, 1, 2):
        shelf.put(saved(index, score=0.5, metrics={"loss": 0.5}, seconds=2.0))
    shelf.remove(saved(1))
    with open(tmp_path / "checkpoints" / "saved.jsonl", "a") as journal:
        journal.write('{"index": 3, "iter')  # killed in the middle of it
    assert read_shelf(tmp_path) == [saved(i, score=0.5, metrics={"loss": 0.5}, seconds=2.0) for i in (0, 2)]


@pytest.mark.parametrize("is_local", [True, False])
def test_one_that_is_deleted_after_its_training_is_withdrawn_with_its_marks(tmp_path, is_local):
    root = str(tmp_path / "artifacts") if is_local else "s3://bucket/artifacts"
    shelf = CheckpointShelf(tmp_path, is_local=is_local)
    shelf.put(saved(0, root))
    shelf.put(saved(1, root))
    shelf.mark(saved(1, root), [saved(1, root), saved(0, root)])
    withdraw(tmp_path, saved(1, root))
    assert {name.partition(".")[0] for name in names(tmp_path)} == {"checkpoint_000000", "best_2"}
    assert read_shelf(tmp_path) == [saved(0, root)]
    withdraw(tmp_path, saved(1, root))
    withdraw(tmp_path / "elsewhere", saved(1, root))
