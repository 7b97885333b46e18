"""Data that have been prepared: Parquet files for training and validation, and a manifest that says what they are.

The manifest is written last. A folder without one is not whole, and is written again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from trainlib import storage

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
    """Of the rows: the same data have the same one, wherever they were prepared."""
    code_version: str
    preprocessor: str
    """What was applied, in words. The fitted preprocessor itself is in ``preprocessor.pkl``."""

    @property
    def datasets(self) -> dict[str, str]:
        """As a trainer takes them."""
        return {"train": self.train, "validation": self.validation}


def read_manifest(folder: str) -> PreparedData | None:
    """What is in a folder; None if it is not there, or not whole."""
    text = storage.read_text(storage.join(folder, MANIFEST))
    return PreparedData(**json.loads(text)) if text is not None else None


def manifest_text(prepared: PreparedData) -> str:
    """What stands in the manifest."""
    return json.dumps(asdict(prepared), indent=2)


def made_from(uri: str) -> dict[str, Any]:
    """What data at a URI were prepared from, if they were."""
    folder = uri.rstrip("/").rpartition("/")[0]
    prepared = read_manifest(folder) if folder else None
    if prepared is None or uri.rstrip("/") not in (prepared.train, prepared.validation):
        return {}
    return {
        "source": prepared.source,
        "source_digest": prepared.source_digest,
        "preprocessor": prepared.preprocessor,
        "code_version": prepared.code_version,
    }
