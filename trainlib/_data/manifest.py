"""Preprocessed data: Parquet files for training, validation and test, and a manifest that describes them.

The manifest is written last. A folder without one is incomplete, and is written again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
from pydantic import BaseModel, ConfigDict

from trainlib import _storage as storage
from trainlib._serving.preprocessing import PREPROCESSOR_FILE
from trainlib.errors import DataError

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["PreprocessedData", "PreprocessedDataset"]

MANIFEST = "_manifest.json"


class PreprocessedDataset(BaseModel):
    """A part of preprocessed data: the folder of its files, and what they were made with. Trainers take it as a path."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    source: str
    source_digest: str
    preprocessor: str
    preprocessor_digest: str | None
    """What the file of the fitted preprocessor has to be, before it is loaded. None if there is none."""
    code_version: str
    split: str = ""
    """How the rows were split, and from which seed. Empty if an older trainlib has written them."""

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"PreprocessedDataset({self.path!r})"


@dataclass(frozen=True)
class PreprocessedData:
    """What ``preprocess`` returns. Pass ``datasets`` to a trainer."""

    source: str
    source_digest: str
    folder: str
    train: str
    """The folder of the Parquet files for training."""
    validation: str
    target: str | None
    features: list[str]
    columns: dict[str, str]
    """Names and types of all columns in the files."""
    train_rows: int
    validation_rows: int
    digest: str
    """A hash of the files' contents."""
    code_version: str
    preprocessor: str
    """A summary of what was applied. The fitted preprocessor is stored beside the files, and saved with the
    checkpoints of a training."""
    preprocessor_digest: str | None
    """A hash of the file of the fitted preprocessor; None if nothing was applied."""
    split: str = ""
    """How the rows were split, and from which seed. Empty if an older trainlib has written them."""
    test: str | None = None
    """The folder of the rows that were held out, as they were read: nothing is applied to them. None if none were."""
    test_rows: int = 0
    test_digest: str | None = None
    """A hash of the contents of the files that were held out."""

    @property
    def datasets(self) -> dict[str, PreprocessedDataset]:
        """The argument ``datasets`` of a trainer. What was held out is none of them."""
        return {"train": self._part(self.train), "validation": self._part(self.validation)}

    def _part(self, path: str) -> PreprocessedDataset:
        return PreprocessedDataset(
            path=path,
            source=self.source,
            source_digest=self.source_digest,
            preprocessor=self.preprocessor,
            preprocessor_digest=self.preprocessor_digest,
            code_version=self.code_version,
            split=self.split,
        )


def read_manifest(folder: str) -> PreprocessedData | None:
    """The manifest of a folder. None if the folder is missing or incomplete, or is not one that ``preprocess`` wrote."""
    text = storage.read_text(storage.join(folder, MANIFEST))
    if text is None:
        return None
    try:
        data = PreprocessedData(**json.loads(text))
    except (ValueError, TypeError):  # truncated, of another version, or not ours
        return None
    parts = [part for part in (data.train, data.validation, data.test) if part is not None]
    is_here = data.folder == folder and all(part.startswith(f"{folder}/") for part in parts)
    return data if is_here else None


def manifest_text(data: PreprocessedData) -> str:
    """The manifest as JSON."""
    return json.dumps(asdict(data), indent=2)


def saved_preprocessor(given: Any) -> Preprocessor | None:
    """The fitted preprocessor that a preprocessed dataset was made with. None for other datasets.

    Only a :class:`PreprocessedDataset` has one. A pickle that merely lies beside data files is never loaded.

    Raises:
        DataError: its file is not the one that ``preprocess`` wrote.
    """
    if not isinstance(given, PreprocessedDataset) or given.preprocessor_digest is None:
        return None
    location = storage.join(given.path.rpartition("/")[0], PREPROCESSOR_FILE)
    data = storage.read_bytes(location)
    if data is None or digest_of_file(data) != given.preprocessor_digest:
        what = "is missing" if data is None else "is not the file that preprocess wrote, and was not loaded"
        raise DataError(f"{location} {what}. Preprocess {given.source} again")
    return cloudpickle.loads(data)  # type: ignore[no-any-return]


def made_from(given: Any) -> dict[str, str]:
    """Where a preprocessed dataset comes from. Empty for other datasets."""
    if not isinstance(given, PreprocessedDataset):
        return {}
    return given.model_dump(include={"source", "source_digest", "preprocessor", "code_version", "split"})


def digest_of_file(data: bytes) -> str:
    """What tells the file of a preprocessor from any other."""
    return hashlib.sha256(data).hexdigest()
