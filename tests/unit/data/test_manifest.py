"""Preprocessed data, and whose pickles are loaded."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import pytest

from trainlib._data.manifest import PreprocessedData, digest_of_file, made_from, read_manifest, saved_preprocessor
from trainlib.errors import DataError


class Runs:
    """Runs code when it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Runs, "ran", True)


def written(folder, preprocessor: bytes) -> PreprocessedData:
    """A folder as ``preprocess`` leaves it."""
    data = PreprocessedData(
        source="people.csv",
        source_digest="d1",
        folder=str(folder),
        train=f"{folder}/train",
        validation=f"{folder}/validation",
        target=None,
        features=["x"],
        columns={"x": "int64"},
        train_rows=1,
        validation_rows=1,
        digest="d2",
        code_version="1",
        preprocessor="StandardScaler(x)",
        preprocessor_digest=digest_of_file(preprocessor),
        split="shuffle, 20% for validation, seed 7",
    )
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "part.csv").write_text("x\n1\n")
    (folder / "preprocessor.pkl").write_bytes(preprocessor)
    (folder / "_manifest.json").write_text(json.dumps(asdict(data)))
    return data


def test_what_lies_beside_a_plain_path_is_not_loaded(tmp_path):
    data = written(tmp_path / "data", pickle.dumps(Runs()))
    for given in (data.train, tmp_path / "data" / "train", f"{data.train}/part.csv"):
        assert saved_preprocessor(given) is None
        assert made_from(given) == {}
    assert not Runs.ran


def test_the_preprocessor_of_a_preprocessed_dataset_is_loaded(tmp_path):
    data = written(tmp_path / "data", pickle.dumps({"mean": 3}))
    assert read_manifest(data.folder) == data
    assert saved_preprocessor(data.datasets["train"]) == {"mean": 3}
    origin = made_from(data.datasets["train"])
    assert (origin["source"], origin["split"]) == ("people.csv", "shuffle, 20% for validation, seed 7")


def test_what_an_older_version_has_written_is_read(tmp_path):
    """It did not say how it had split."""
    data = written(tmp_path / "data", b"")
    old = {key: value for key, value in asdict(data).items() if key != "split"}
    (tmp_path / "data" / "_manifest.json").write_text(json.dumps(old))
    assert read_manifest(data.folder).split == ""
    dataset = data.datasets["train"]
    del dataset.__dict__["split"]  # as one that it has pickled
    assert made_from(pickle.loads(pickle.dumps(dataset)))["source"] == "people.csv"


def test_a_file_that_was_exchanged_is_not_loaded(tmp_path):
    data = written(tmp_path / "data", pickle.dumps({"mean": 3}))
    (tmp_path / "data" / "preprocessor.pkl").write_bytes(pickle.dumps(Runs()))
    with pytest.raises(DataError, match=r"preprocessor\.pkl is not the file that preprocess wrote, and was not loaded"):
        saved_preprocessor(data.datasets["train"])
    (tmp_path / "data" / "preprocessor.pkl").unlink()
    with pytest.raises(DataError, match=r"preprocessor\.pkl is missing\. Preprocess people\.csv again"):
        saved_preprocessor(data.datasets["train"])
    assert not Runs.ran


def test_a_manifest_that_points_elsewhere_does_not_count(tmp_path):
    data = written(tmp_path / "data", b"")
    moved = tmp_path / "moved"
    (tmp_path / "data").rename(moved)
    assert read_manifest(str(moved)) is None
    assert read_manifest(data.folder) is None
