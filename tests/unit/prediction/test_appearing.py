"""The folder of predictions: there when it is complete, or not at all."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from trainlib import _storage as storage
from trainlib._prediction.run import appearing


def test_a_folder_on_a_disk_gets_its_name_at_the_end(tmp_path):
    folder = tmp_path / "predictions"
    with appearing(str(folder)) as working:
        Path(working).mkdir()
        (Path(working) / "part.parquet").write_text("rows")
        assert not folder.exists()
    assert [each.name for each in folder.iterdir()] == ["part.parquet"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("root", ["disk", "memory"])
def test_nothing_is_left_of_one_that_failed(tmp_path, root):
    around = str(tmp_path) if root == "disk" else f"memory://{uuid.uuid4().hex}"

    def write() -> None:
        with appearing(storage.join(around, "predictions")) as working:
            filesystem, inner = storage.filesystem(working)
            filesystem.makedirs(inner)
            storage.write_bytes(storage.join(working, "part.parquet"), b"rows")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert storage.names_in(around) == set()


@pytest.mark.parametrize("root", ["disk", "memory"])
def test_a_folder_tells_its_names_and_its_size(tmp_path, root):
    folder = str(tmp_path) if root == "disk" else f"memory://{uuid.uuid4().hex}"
    filesystem, inner = storage.filesystem(storage.join(folder, "inner"))
    filesystem.makedirs(inner)
    storage.write_bytes(storage.join(folder, "a"), b"12345")
    storage.write_bytes(storage.join(folder, "inner", "b"), b"678")
    assert (storage.names_in(folder), storage.size_of(folder)) == ({"a", "inner"}, 8)
    assert (storage.names_in(storage.join(folder, "no")), storage.size_of(storage.join(folder, "no"))) == (set(), 0)
