"""Data that have been prepared: Parquet files for training and validation, and a manifest that says what they are.

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

__all__ = ["PreparedData"]

MANIFEST = "_manifest.json"


@dataclass(frozen=True)
class PreparedData:
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


def read_manifest(folder: str) -> PreparedData | None:
    """What is in a folder; None if it is not there, or not whole."""
    text = storage.read_text(storage.join(folder, MANIFEST))
    try:
        return PreparedData(**json.loads(text)) if text is not None else None
    except (ValueError, TypeError):  # cut short, of another version, or somebody else's
        return None


def manifest_text(prepared: PreparedData) -> str:
    """What stands in the manifest."""
    return json.dumps(asdict(prepared), indent=2)


def _prepared_at(uri: str) -> PreparedData | None:
    """What a folder of prepared data belongs to; None if it is something else."""
    uri = storage.absolute(uri).rstrip("/")
    if "::" in uri or uri.startswith(("http://", "https://")):
        return None  # nothing is prepared there
    folder = uri.rpartition("/")[0]
    for place in (folder, folder.rpartition("/")[0]):
        try:
            prepared = read_manifest(place) if place else None
        except (OSError, ValueError):  # whoever may read the data may not look around
            return None
        if prepared is not None and uri in (prepared.train, prepared.validation):
            return prepared
    return None


def applied_before(given: Any) -> Preprocessor | None:
    """The preprocessor that was applied when a dataset was prepared, fitted; None if it was not."""
    prepared = _prepared_at(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else None
    if prepared is None or prepared.preprocessor == "none":
        return None
    store, inner = storage.filesystem(storage.join(prepared.train.rpartition("/")[0], PREPROCESSOR_FILE))
    return cloudpickle.loads(store.cat_file(inner))  # type: ignore[no-any-return]


def made_from(uri: str) -> dict[str, Any]:
    """What data at a URI were prepared from, if they were."""
    prepared = _prepared_at(uri)
    if prepared is None:
        return {}
    return {
        "source": prepared.source,
        "source_digest": prepared.source_digest,
        "preprocessor": prepared.preprocessor,
        "code_version": prepared.code_version,
    }
