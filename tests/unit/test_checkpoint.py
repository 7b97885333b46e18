"""A checkpoint as a dict, a directory or a URI, and the conversions between them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import fsspec
import numpy as np
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


def test_all_spellings_of_what_a_checkpoint_is_made_of(tmp_path):
    assert Checkpoint(data_dict={"epoch": 3}).to_dict() == {"epoch": 3}
    path = Checkpoint.from_dict({"epoch": 3}).to_directory(tmp_path / "saved")
    for made in (
        Checkpoint(path),
        Checkpoint(local_path=path),
        Checkpoint(path=Path(path)),
        Checkpoint(uri=f"file://{path}"),
    ):
        assert made.get_internal_representation() == ("local_path", path)
        assert made.to_dict() == {"epoch": 3}
    for wrong in ({}, {"data_dict": {}, "local_path": path}, {"uri": path, "path": path}):
        with pytest.raises(ValueError, match="pass one of them"):
            Checkpoint(**wrong)


def test_bytes_and_back(tmp_path):
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "notes.txt").write_text("hello")
    folder = Checkpoint.from_bytes(Checkpoint.from_directory(tmp_path).to_bytes())
    assert folder.to_dict() == {"nested/notes.txt": b"hello"}
    with folder.as_directory() as copy:
        assert Path(copy, "nested", "notes.txt").read_text() == "hello"
    assert not Path(copy).exists()
    values = {"epoch": 3, "losses": [0.5, None], "weights": np.arange(3.0), "mean": np.float32(2)}
    loaded = Checkpoint.from_bytes(Checkpoint.from_dict(values).to_bytes()).to_dict()
    assert np.array_equal(loaded.pop("weights"), values.pop("weights"))
    assert loaded == values
    with pytest.raises(TypeError, match="takes what to_bytes"):
        Checkpoint.from_bytes(b"something else")


def test_code_in_bytes_does_not_run_unless_they_are_trusted():
    Runs.ran = False
    sent = Checkpoint.from_dict({"weights": Runs()}).to_bytes()
    with pytest.raises(
        UntrustedCheckpointError, match=r"These bytes have a pickle in it.*from_bytes\(\.\.\., trust=True"
    ):
        Checkpoint.from_bytes(sent).to_dict()
    assert not Runs.ran
    Checkpoint.from_bytes(sent, trust=True).to_dict()
    assert Runs.ran


def test_a_preprocessor_goes_in_and_comes_out(tmp_path):
    preprocessor = {"mean": 2.0}  # any object does
    of_dict = Checkpoint.from_dict({"epoch": 3})
    of_dict.set_preprocessor(preprocessor)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.bin").write_bytes(b"a")
    of_files = Checkpoint.from_directory(tmp_path / "files")
    of_files.set_preprocessor(preprocessor)
    of_weights = TorchCheckpoint.from_state_dict({"w": torch.ones(1)}, preprocessor=preprocessor)
    for number, made in enumerate((of_dict, of_files, of_weights)):
        for copy in (
            made,
            Checkpoint(made.to_directory(tmp_path / str(number))),
            Checkpoint.from_bytes(made.to_bytes()),
            pickle.loads(pickle.dumps(made)),
        ):
            assert copy.get_preprocessor() == preprocessor
            with copy.as_directory() as folder:
                assert Checkpoint(folder).get_preprocessor() == preprocessor
    assert os.listdir(tmp_path / "files") == ["a.bin"], "what the user wrote stays as it is"


def test_a_checkpoint_pickles_with_what_only_it_has(tmp_path):
    model = torch.nn.Linear(2, 1)
    made = TorchCheckpoint.from_model(model)
    pickled = pickle.dumps(made)
    del made
    sent = pickle.loads(pickled)
    assert isinstance(sent, TorchCheckpoint)
    assert torch.equal(sent.get_model().weight, model.weight)
    (tmp_path / "weights").write_bytes(bytes(100_000))
    folder = pickle.dumps(Checkpoint.from_directory(tmp_path))
    assert len(folder) < 1000, "a folder stays where it is"
    assert pickle.loads(folder).path == str(tmp_path)


def test_any_checkpoint_can_be_read_as_that_of_a_framework():
    model = torch.nn.Linear(2, 1)
    plain = Checkpoint.from_dict({"epoch": 3, "model_weights": model.state_dict()})
    loaded = TorchCheckpoint.from_checkpoint(plain).get_model(torch.nn.Linear(2, 1))
    assert torch.equal(loaded.weight, model.weight)
    assert TorchCheckpoint.from_checkpoint(TorchCheckpoint.from_model(model)).get_model().weight.shape == (1, 2)
    with pytest.raises(CheckpointNotFoundError, match="It has 'epoch'"):
        TorchCheckpoint.from_dict({"epoch": 3}).get_model(model)
