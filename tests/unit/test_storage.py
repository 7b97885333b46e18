"""Folders reach the disk before they count."""

from __future__ import annotations

import os

import pytest

from trainlib import _storage as storage


@pytest.fixture
def order(monkeypatch) -> list[tuple[str, str]]:
    """What is synced and renamed, in order. The calls are made all the same."""
    happened: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def seen_fsync(descriptor: int) -> None:
        happened.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def seen_rename(source, target) -> None:
        happened.append(("rename", os.fspath(target)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "rename", seen_rename)
    return happened


def make(folder):
    (folder / "shards").mkdir(parents=True)
    (folder / "weights").write_text("w")
    (folder / "shards" / "0").write_text("s")
    return folder


def test_everything_is_synced_before_the_rename_and_the_folder_around_it_after(tmp_path, order):
    source, target = make(tmp_path / "staged"), tmp_path / "models" / "m-1" / "checkpoint_000000"
    storage.upload(source, str(target))
    renamed = order.index(("rename", str(target)))
    before, after = order[:renamed], order[renamed + 1 :]
    assert {path for _, path in before} == {
        str(path) for path in (source, source / "weights", source / "shards", source / "shards" / "0")
    }
    assert after == [("sync", str(path)) for path in (target.parent, tmp_path / "models", tmp_path)]
    assert (target / "shards" / "0").read_text() == "s"


def test_a_copy_from_another_disk_is_synced_too(tmp_path, order, monkeypatch):
    source, target = make(tmp_path / "staged"), tmp_path / "checkpoint_000000"
    monkeypatch.setattr(storage, "_same_disk", lambda source, target: False)
    storage.upload(source, str(target))
    aside = tmp_path / ".checkpoint_000000.part"
    renamed = order.index(("rename", str(target)))
    assert {path for _, path in order[:renamed]} == {
        str(path) for path in (aside, aside / "weights", aside / "shards", aside / "shards" / "0")
    }
    assert order[renamed + 1 :] == [("sync", str(tmp_path))]
    assert (target / "weights").read_text() == "w"
    assert not source.exists()
    assert not aside.exists()
