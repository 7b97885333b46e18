"""A checkpoint as a dict, a directory or a URI, and the conversions between them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import fsspec
import pytest
import torch

from trainlib import Checkpoint
from trainlib.errors import CheckpointNotFoundError, UntrustedCheckpointError
from trainlib.torch import TorchCheckpoint


def test_dict_to_directory_to_dict(tmp_path):
    path = Checkpoint.from_dict({"epoch": 3, "weights": [1.0, 2.0]}).to_directory(tmp_path / "saved")
    assert Checkpoint.from_directory(path).to_dict() == {"epoch": 3, "weights": [1.0, 2.0]}


def test_directory_to_dict_keeps_every_file(tmp_path):
    (tmp_path / "nested").mkdir()
    (tmp_path / "model.bin").write_bytes(b"\x00\x01")
    (tmp_path / "nested" / "notes.txt").write_text("hello")
    assert Checkpoint.from_directory(tmp_path).to_dict() == {"model.bin": b"\x00\x01", "nested/notes.txt": b"hello"}


def test_uri_and_back():
    uri = "memory://checkpoints/three"
    assert Checkpoint.from_dict({"epoch": 3}).to_uri(uri) == uri
    checkpoint = Checkpoint.from_uri(uri, trust=True)
    assert checkpoint.get_internal_representation() == ("uri", uri)
    assert checkpoint.to_dict() == {"epoch": 3}
    with checkpoint.as_directory() as folder:
        assert [file.name for file in Path(folder).iterdir()] == ["dict_checkpoint.pkl"]
    assert not Path(folder).exists(), "a copy is removed when it is no longer needed"
    fsspec.filesystem("memory").rm("/checkpoints", recursive=True)


def test_nested_directory_to_uri_and_back(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.bin").write_bytes(b"x")
    (tmp_path / "top.bin").write_bytes(b"t")
    uri = Checkpoint.from_directory(tmp_path).to_uri("memory://nested/one")
    assert Checkpoint(uri).to_dict() == {"deep/er/x.bin": b"x", "top.bin": b"t"}


def test_a_local_directory_is_read_in_place(tmp_path):
    checkpoint = Checkpoint(Checkpoint.from_dict({"a": 1}).to_directory(tmp_path / "here"))
    with checkpoint.as_directory() as folder:
        assert folder == str(tmp_path / "here")
    assert (tmp_path / "here").exists()
    assert checkpoint.get_internal_representation() == ("local_path", str(tmp_path / "here"))
    assert checkpoint.uri == (tmp_path / "here").as_uri()


def test_a_dict_has_no_path():
    with pytest.raises(ValueError, match="use to_directory"):
        _ = Checkpoint.from_dict({"a": 1}).path


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="nothing is there"):
        Checkpoint(tmp_path / "gone").to_dict()
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CheckpointNotFoundError, match="found a file"):
        Checkpoint.from_directory(file)


def test_torch_checkpoints_hold_models():
    import torch

    model = torch.nn.Linear(2, 1)
    prefixed = {f"module.{key}": value for key, value in model.state_dict().items()}
    loaded = TorchCheckpoint.from_state_dict(prefixed).get_model(torch.nn.Linear(2, 1))
    assert torch.equal(loaded.weight, model.weight)
    assert torch.equal(TorchCheckpoint.from_model(model).get_model().weight, model.weight)
    checkpoint = TorchCheckpoint.from_model(model)
    folder = Path(checkpoint.path)
    assert folder.exists()
    del checkpoint
    assert not folder.exists(), "its files go with it"
    with pytest.raises(ValueError, match="pass the model to load it into"):
        TorchCheckpoint.from_state_dict(model.state_dict()).get_model()


class Runs:
    """Runs code when it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Runs, "ran", True)


def test_code_of_others_does_not_run():
    store = fsspec.filesystem("memory")
    store.pipe_file("/foreign/dict_checkpoint.pkl", pickle.dumps({"weights": Runs()}))
    foreign = Checkpoint.from_uri("memory:///foreign")
    for load in (foreign.to_dict, foreign.get_preprocessor):
        with pytest.raises(UntrustedCheckpointError, match=r"memory:///foreign has a pickle in it.*trust=True"):
            load()
    assert not Runs.ran
    Checkpoint.from_uri("memory:///foreign", trust=True).to_dict()
    assert Runs.ran


def test_files_of_another_user_are_not_trusted(tmp_path, monkeypatch):
    path = Checkpoint.from_dict({"epoch": 3}).to_directory(tmp_path / "theirs")
    assert Checkpoint.from_directory(path).to_dict() == {"epoch": 3}
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(UntrustedCheckpointError):
        Checkpoint.from_directory(path).to_dict()
    with Checkpoint.from_directory(path).as_directory() as folder:
        assert os.listdir(folder) == ["dict_checkpoint.pkl"]


def test_weights_are_loaded_from_anywhere_and_models_only_with_trust(tmp_path):
    store = fsspec.filesystem("memory")
    model = torch.nn.Linear(2, 1)
    for name, made in (
        ("weights", TorchCheckpoint.from_state_dict(model.state_dict())),
        ("model", TorchCheckpoint.from_model(model)),
    ):
        store.pipe_file(f"/{name}/model.pt", Path(made.path, "model.pt").read_bytes())
    loaded = TorchCheckpoint.from_uri("memory:///weights").get_model(torch.nn.Linear(2, 1))
    assert torch.equal(loaded.weight, model.weight)
    with pytest.raises(UntrustedCheckpointError):
        TorchCheckpoint.from_uri("memory:///model").get_model()
    assert torch.equal(TorchCheckpoint.from_uri("memory:///model", trust=True).get_model().weight, model.weight)
