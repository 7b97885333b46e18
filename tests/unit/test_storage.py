"""Folders at paths and URIs."""

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


@pytest.mark.parametrize("location", ["hdfs:///runs", "hdfs:/runs"])
def test_a_uri_without_a_host_is_still_a_uri(location):
    """A library that joins URLs drops the slashes, and fsspec then takes the rest for a path of this machine."""
    assert storage.local_path(location) is None
    assert storage.absolute(location) == "hdfs:///runs"
    with pytest.raises(ValueError, match=r"^cannot reach hdfs:/+runs: [^\n]+$"):
        storage.filesystem(location)


def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_text("s")
    folder = make(tmp_path / "checkpoint")
    (folder / "newest").symlink_to("shards/0")
    storage.download(str(folder), tmp_path / "copy")
    assert (tmp_path / "copy" / "newest").read_text() == "s"
    for target in ("../../secret", tmp_path / "secret", "../..", "../shards/../../secret", ".."):
        (folder / "shards" / "link").symlink_to(target)
        with pytest.raises(ValueError, match=r"checkpoint/shards/link is a link to "):
            storage.download(str(folder), tmp_path / "other")
        assert not (tmp_path / "other").exists()
        (folder / "shards" / "link").unlink()


def test_a_folder_may_itself_be_reached_by_a_link(tmp_path):
    make(tmp_path / "checkpoint")
    (tmp_path / "link").symlink_to(tmp_path / "checkpoint")
    storage.download(str(tmp_path / "link"), tmp_path / "copy")
    assert (tmp_path / "copy" / "weights").read_text() == "w"


def test_no_location_is_not_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch()
    with pytest.raises(ValueError, match="no location"):
        storage.delete("")
    assert (tmp_path / "mine").exists()
