"""Preprocessed data: Parquet files for training and validation, and a manifest that says what they are.

The manifest is written last. A folder without one is not whole, and is written again.
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
    """What ``preprocess`` gives; ``train`` and ``validation`` can be passed to a trainer as datasets."""

    source: str
    source_digest: str
    folder: str
    train: str
    """The folder of the Parquet files for training."""
    validation: str
    target: str | None
    features: list[str]
    columns: dict[str, str]
    """Names and types of all columns, as they are in the files."""
    train_rows: int
    validation_rows: int
    digest: str
    """Of the files."""
    code_version: str
    preprocessor: str
    """What was applied, in words. The fitted one lies beside the files, and goes with the checkpoints of a training."""

    @property
    def datasets(self) -> dict[str, str]:
        """As a trainer takes them."""
        return {"train": self.train, "validation": self.validation}


def read_manifest(folder: str) -> PreprocessedData | None:
    """What is in a folder; None if it is not there, or not whole."""
    text = storage.read_text(storage.join(folder, MANIFEST))
    try:
        return PreprocessedData(**json.loads(text)) if text is not None else None
    except (ValueError, TypeError):  # cut short, of another version, or somebody else's
        return None


def manifest_text(data: PreprocessedData) -> str:
    """What stands in the manifest."""
    return json.dumps(asdict(data), indent=2)


def _preprocessed_at(uri: str) -> PreprocessedData | None:
    """What a folder of prepared data belongs to; None if it is something else."""
    uri = storage.absolute(uri).rstrip("/")
    if "::" in uri or uri.startswith(("http://", "https://")):
        return None  # nothing is prepared there
    folder = uri.rpartition("/")[0]
    for place in (folder, folder.rpartition("/")[0]):
        try:
            data = read_manifest(place) if place else None
        except (OSError, ValueError):  # whoever may read the data may not look around
            return None
        if data is not None and uri in (data.train, data.validation):
            return data
    return None


def saved_preprocessor(given: Any) -> Preprocessor | None:
    """The preprocessor that was applied when a dataset was prepared, fitted; None if it was not."""
    data = _preprocessed_at(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else None
    if data is None or data.preprocessor == "none":
        return None
    store, inner = storage.filesystem(storage.join(data.train.rpartition("/")[0], PREPROCESSOR_FILE))
    return cloudpickle.loads(store.cat_file(inner))  # type: ignore[no-any-return]


def made_from(uri: str) -> dict[str, Any]:
    """What data at a URI were prepared from, if they were."""
    data = _preprocessed_at(uri)
    if data is None:
        return {}
    return {
        "source": data.source,
        "source_digest": data.source_digest,
        "preprocessor": data.preprocessor,
        "code_version": data.code_version,
    }
