"""Where a training may start from: a path, a URI or a checkpoint. What the registry names is in tests/integration."""

from __future__ import annotations

import pickle

import fsspec
import pytest

from trainlib import Checkpoint, DataParallelTrainer
from trainlib.errors import CheckpointNotFoundError, UntrustedCheckpointError


def resumed_from(given):
    checkpoint = DataParallelTrainer(print, resume_from_checkpoint=given).resume_from_checkpoint
    assert checkpoint is not None
    return checkpoint


def test_paths_are_taken(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint_000003"
    Checkpoint.from_dict({"epoch": 3}).to_directory(path)
    monkeypatch.chdir(tmp_path)
    for given in (str(path), path, path.as_uri(), "checkpoint_000003"):
        assert resumed_from(given).to_dict() == {"epoch": 3}


def test_a_uri_is_taken_and_its_code_is_not_run():
    """As with Checkpoint.from_uri: whoever trusts it says so."""
    fsspec.filesystem("memory").pipe_file("/theirs/dict_checkpoint.pkl", pickle.dumps({"epoch": 3}))
    with pytest.raises(UntrustedCheckpointError, match="trust=True"):
        resumed_from("memory:///theirs").to_dict()
    assert resumed_from(Checkpoint.from_uri("memory:///theirs", trust=True)).to_dict() == {"epoch": 3}


def test_nothing_at_a_path_is_said_before_anything_starts(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match=f"no checkpoint at {tmp_path}/gone: nothing is there"):
        resumed_from(tmp_path / "gone")
