"""Preprocessed data: Parquet files for training and validation, and a manifest that describes them.

The manifest is written last. A folder without one is incomplete, and is written again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib import _storage as storage
from trainlib.checkpoint import PREPROCESSOR_FILE

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["PreprocessedData"]

MANIFEST = "_manifest.json"


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

    @property
    def datasets(self) -> dict[str, str]:
        """The argument ``datasets`` of a trainer."""
        return {"train": self.train, "validation": self.validation}


def read_manifest(folder: str) -> PreprocessedData | None:
    """The manifest of a folder. None if the folder is missing or incomplete."""
    text = storage.read_text(storage.join(folder, MANIFEST))
    try:
        return PreprocessedData(**json.loads(text)) if text is not None else None
    except (ValueError, TypeError):  # truncated, of another version, or not ours
        return None


def manifest_text(data: PreprocessedData) -> str:
    """The manifest as JSON."""
    return json.dumps(asdict(data), indent=2)


def _preprocessed_at(uri: str) -> PreprocessedData | None:
    """The preprocessed data that a folder is part of. None if it is something else."""
    uri = storage.absolute(uri).rstrip("/")
    if "::" in uri or uri.startswith(("http://", "https://")):
        return None  # preprocessed data is never written there
    folder = uri.rpartition("/")[0]
    for place in (folder, folder.rpartition("/")[0]):
        try:
            data = read_manifest(place) if place else None
        except (OSError, ValueError):  # we may have no permission to list the parent folder
            return None
        if data is not None and uri in (data.train, data.validation):
            return data
    return None


def saved_preprocessor(given: Any) -> Preprocessor | None:
    """The fitted preprocessor that a preprocessed dataset was made with. None for other datasets."""
    data = _preprocessed_at(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else None
    if data is None or data.preprocessor == "none":
        return None
    store, inner = storage.filesystem(storage.join(data.train.rpartition("/")[0], PREPROCESSOR_FILE))
    return cloudpickle.loads(store.cat_file(inner))  # type: ignore[no-any-return]


def made_from(uri: str) -> dict[str, Any]:
    """Where preprocessed data at a URI comes from. Empty for other data."""
    data = _preprocessed_at(uri)
    if data is None:
        return {}
    return {
        "source": data.source,
        "source_digest": data.source_digest,
        "preprocessor": data.preprocessor,
        "code_version": data.code_version,
    }
